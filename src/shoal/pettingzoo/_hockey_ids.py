"""Ids and functions of hockey, and whether they can be replaced by its kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from shoal._options import VectorOptions

__all__ = ["kernel_name", "python_factory", "replaceable_by_kernel"]

_CONTINUOUS, _DISCRETE = "shoal/Hockey-v0", "shoal/HockeyDiscrete-v0"

_functions: list[Callable[..., Any]] = []

Function = TypeVar("Function", bound=Callable[..., Any])


def replaceable_by_kernel(function: Function) -> Function:
    """Mark a function whose environments can be replaced by the hockey kernel."""
    _functions.append(function)
    return function


def kernel_name(what: Any, options: VectorOptions, arguments: dict[str, Any]) -> str | None:
    """Return the id of the kernel to use, or None for Python environments.

    Raises:
        ValueError: If ``what`` is an id other than those of two-player hockey, or the options need
            a kernel and there is none.
    """
    if isinstance(what, str):
        if what not in (_CONTINUOUS, _DISCRETE):
            raise ValueError(
                f"the only supported ids are {_CONTINUOUS!r} and {_DISCRETE!r}, got {what!r}: for "
                "other environments, pass a function that creates a parallel environment"
            )
        name = what
    elif callable(what) and what in _functions:
        name = _DISCRETE if arguments.get("discrete") else _CONTINUOUS
    else:
        name = None
    if name is not None and not options.excludes_kernels:
        return name
    options.check_kernel(repr(what))
    return None


def python_factory(what: Any) -> Any:
    """Return the function that creates a match with this id; return other values unchanged."""
    if not isinstance(what, str):
        return what
    from shoal.pettingzoo.hockey_v0 import parallel_env

    return partial(parallel_env, discrete=what == _DISCRETE)
