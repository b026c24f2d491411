"""Random numbers for numba kernels, equal to those of ``shoal_kernel.h``."""

from __future__ import annotations

import ctypes
from typing import Any

from shoal import _native

__all__ = ["random_below", "random_double", "random_uniform"]

_ADDRESSES = _native.random_functions()


def _function(name: str, doc: str, result: Any, *arguments: Any) -> Any:
    """Wrap a native function for compiled code; its first argument is a slot's ``random``."""
    prototype: Any = ctypes.CFUNCTYPE(result, ctypes.c_int64, *arguments)
    members = {
        "__doc__": doc,
        "__module__": __name__,
        # Kernels are pickled with the functions that they use; these are pickled by name.
        "__reduce__": lambda _: name,
        "_flags_": prototype._flags_,
        "_restype_": prototype._restype_,
        "_argtypes_": prototype._argtypes_,
    }
    return type(prototype)(name, (prototype,), members)(_ADDRESSES[name])


random_double = _function(
    "random_double", "random_double(random): Return a number from [0, 1).", ctypes.c_double
)

random_uniform = _function(
    "random_uniform",
    "random_uniform(random, low, high): Return a number from [low, high).",
    ctypes.c_double,
    ctypes.c_double,
    ctypes.c_double,
)

random_below = _function(
    "random_below",
    "random_below(random, count): Return an integer from 0 to count - 1.",
    ctypes.c_int64,
    ctypes.c_int64,
)
