"""The functions and names that a client may call on a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.pools import _env_access

__all__ = ["allowed_name", "resolve_call"]

_ALLOWED: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        _env_access.get_attribute,
        _env_access.has_attribute,
        _env_access.call_method,
        _env_access.set_attribute,
        _env_access.is_wrapped,
    )
}


_ATTRIBUTE_METHODS = ("get_wrapper_attr", "has_wrapper_attr", "set_wrapper_attr")
"""Methods of every environment whose first argument is the name of an attribute."""


def allowed_name(function: Any) -> str:
    """Return the name of an allowed function.

    Raises:
        TypeError: The function is not allowed; functions cannot be sent.
    """
    name = getattr(function, "__name__", "")
    if _ALLOWED.get(name) is not function:
        raise TypeError(
            f"{function!r} cannot be called on a server: pass the name of a method or attribute"
        )
    return str(name)


def resolve_call(
    name: str, is_function: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | Callable[..., Any]:
    """Resolve the name of a method, an attribute or an allowed function.

    Raises:
        TypeError: The name is not that of an allowed function.
        AttributeError: The name, or that of the accessed attribute, is private.
    """
    if not is_function:
        _check_name(name, args, kwargs)
        return name
    if name not in _ALLOWED:
        raise TypeError(f"function {name!r} is not allowed, expected one of {[*_ALLOWED]}")
    if name == _env_access.call_method.__name__:
        method, method_args, method_kwargs = args
        _check_name(method, method_args, method_kwargs)
    elif name != _env_access.is_wrapped.__name__:
        _check_name(name, args, kwargs, takes_name=True)
    return _ALLOWED[name]


def _check_name(name: Any, args: Any, kwargs: dict[str, Any], *, takes_name: bool = False) -> None:
    names = [name]
    if takes_name or name in _ATTRIBUTE_METHODS:
        if not args or "name" in kwargs:
            raise TypeError(f"the first argument of {name!r} must be the name of an attribute")
        names.append(args[0])
    for each in names:
        if not isinstance(each, str) or each.startswith("_"):
            raise AttributeError(f"{each!r} is private and cannot be accessed by clients")
