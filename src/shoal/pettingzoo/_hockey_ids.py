"""Which names and functions mean hockey, and whether its kernel can stand in for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from shoal._options import VectorOptions

__all__ = ["kernel_of", "made_by_kernel", "python_match"]

_CONTINUOUS, _DISCRETE = "shoal/Hockey-v0", "shoal/HockeyDiscrete-v0"

_functions: list[Callable[..., Any]] = []

Function = TypeVar("Function", bound=Callable[..., Any])


def made_by_kernel(function: Function) -> Function:
    """Say of a function that what it makes, many times over, the kernel of hockey can be."""
    _functions.append(function)
    return function


def kernel_of(what: Any, options: VectorOptions, arguments: dict[str, Any]) -> str | None:
    """The name of the kernel that a vector is to be made of, None where it is not native.

    Raises:
        ValueError: There is a name that is not one of a match between two agents, or what only
            kernels can do is asked of something else.
    """
    if isinstance(what, str):
        if what not in (_CONTINUOUS, _DISCRETE):
            raise ValueError(
                f"by name there are the matches {_CONTINUOUS!r} and {_DISCRETE!r}, got {what!r}: "
                "give a function that makes a parallel environment"
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


def python_match(what: Any) -> Any:
    """The function that makes a match by this name; what is no name, as it is."""
    if not isinstance(what, str):
        return what
    from shoal.pettingzoo.hockey_v0 import parallel_env

    return partial(parallel_env, discrete=what == _DISCRETE)
