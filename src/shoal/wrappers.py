"""Wrappers that convert the arrays of any vector to another library.

The counterparts of Gymnasium's wrappers are in :mod:`shoal.vector.wrappers`, those of
Stable-Baselines3's in :mod:`shoal.sb3`.
"""

from shoal.vector.wrappers._to_torch import ToTorch

__all__ = ["ToTorch"]
