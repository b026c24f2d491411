"""Random numbers for kernels that numba compiles: those that kernels in C draw."""

from __future__ import annotations

import ctypes
from typing import Any

from shoal import _native

__all__ = ["random_below", "random_double", "random_uniform"]

_ADDRESSES = _native.random_functions()


def _function(name: str, doc: str, result: Any, *arguments: Any) -> Any:
    """A native function that compiled code can call; the first argument is a slot's ``random``."""
    plain: Any = ctypes.CFUNCTYPE(result, ctypes.c_int64, *arguments)
    members = {
        "__doc__": doc,
        "__module__": __name__,
        # Kernels travel to other processes with the functions that they use: these by their names.
        "__reduce__": lambda _: name,
        "_flags_": plain._flags_,
        "_restype_": plain._restype_,
        "_argtypes_": plain._argtypes_,
    }
    return type(plain)(name, (plain,), members)(_ADDRESSES[name])


random_double = _function(
    "random_double", "random_double(random): a number from [0, 1).", ctypes.c_double
)

random_uniform = _function(
    "random_uniform",
    "random_uniform(random, low, high): a number from [low, high).",
    ctypes.c_double,
    ctypes.c_double,
    ctypes.c_double,
)

random_below = _function(
    "random_below",
    "random_below(random, count): an integer from 0 to count - 1.",
    ctypes.c_int64,
    ctypes.c_int64,
)
