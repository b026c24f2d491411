"""Kernels: native environments, of Shoal's or of the user's own."""

from shoal.kernels.api import kernel
from shoal.kernels.definition import Kernel
from shoal.kernels.drawing import random_below, random_double, random_uniform

__all__ = ["Kernel", "kernel", "random_below", "random_double", "random_uniform"]
