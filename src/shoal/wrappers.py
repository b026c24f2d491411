"""Wrappers that bring any vector to what a library computes with.

Wrappers of Gymnasium's names are in :mod:`shoal.vector.wrappers`, those of Stable-Baselines3's in
:mod:`shoal.sb3`.
"""

from shoal.vector.wrappers._to_torch import ToTorch

__all__ = ["ToTorch"]
