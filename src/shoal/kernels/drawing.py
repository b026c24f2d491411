"""Random numbers for kernels that numba compiles: those that kernels in C draw."""

from __future__ import annotations

import ctypes
from typing import Any

from shoal import _native

__all__ = ["random_below", "random_double", "random_uniform"]

_ADDRESSES = _native.random_functions()


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """A native function that compiled code can call; the first argument is a slot's ``random``."""
    return ctypes.CFUNCTYPE(result, ctypes.c_int64, *arguments)(_ADDRESSES[name])


random_double = _function("double", ctypes.c_double)
"""``random_double(random)``: a number from [0, 1)."""

random_uniform = _function("uniform", ctypes.c_double, ctypes.c_double, ctypes.c_double)
"""``random_uniform(random, low, high)``: a number from [low, high)."""

random_below = _function("below", ctypes.c_int64, ctypes.c_int64)
"""``random_below(random, count)``: an integer from 0 to count - 1."""
