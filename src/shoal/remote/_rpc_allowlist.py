"""The functions that frontends reach environments with, by the names that a client may say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.pools import _env_access

__all__ = ["name_of_reached", "reached"]

_REACHED: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        _env_access.get_attribute,
        _env_access.has_attribute,
        _env_access.call_method,
        _env_access.set_attribute,
        _env_access.is_wrapped,
    )
}


_TAKING_NAMES = ("get_wrapper_attr", "has_wrapper_attr", "set_wrapper_attr")
"""Methods of every environment that reach an attribute by its name."""


def name_of_reached(function: Any) -> str:
    """The name of a function that a server knows as well.

    Raises:
        TypeError: It is another one, which would have to be sent.
    """
    name = getattr(function, "__name__", "")
    if _REACHED.get(name) is not function:
        raise TypeError(
            f"{function!r} cannot be called on a server: what environments have is reached by name"
        )
    return str(name)


def reached(
    what: str, is_function: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | Callable[..., Any]:
    """What a client has named, to be called with these arguments.

    Raises:
        TypeError: It is no function that a client may name.
        AttributeError: It is private, or leads to something that is.
    """
    if not is_function:
        _check_name(what, args, kwargs)
        return what
    if what not in _REACHED:
        raise TypeError(f"{what!r} is no function that a client may name; those are {[*_REACHED]}")
    if what == _env_access.call_method.__name__:
        name, its_args, its_kwargs = args
        _check_name(name, its_args, its_kwargs)
    elif what != _env_access.is_wrapped.__name__:
        _check_name(what, args, kwargs, takes_name=True)
    return _REACHED[what]


def _check_name(name: Any, args: Any, kwargs: dict[str, Any], *, takes_name: bool = False) -> None:
    names = [name]
    if takes_name or name in _TAKING_NAMES:
        if not args or "name" in kwargs:
            raise TypeError(f"{name!r} takes the name of an attribute first")
        names.append(args[0])
    for each in names:
        if not isinstance(each, str) or each.startswith("_"):
            raise AttributeError(f"{each!r} is private, and not for clients")
