"""Kernels: native environments, of Shoal's or of the user's own."""

from shoal.kernels._api import kernel
from shoal.kernels._definition import Kernel
from shoal.kernels._numba_random import random_below, random_double, random_uniform

__all__ = ["Kernel", "kernel", "random_below", "random_double", "random_uniform"]
