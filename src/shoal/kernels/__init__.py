"""Kernels: native environments, built in or written by users.

How it works: docs/internals/kernels.md.
"""

from shoal.kernels._definition import Kernel
from shoal.kernels._numba_kernels import numba_kernel
from shoal.kernels._numba_random import random_below, random_double, random_uniform
from shoal.kernels._shared_library import include_dir, load

__all__ = [
    "Kernel",
    "include_dir",
    "load",
    "numba_kernel",
    "random_below",
    "random_double",
    "random_uniform",
]
