"""Work of a fixed size that a contender repeats while it is measured."""

from __future__ import annotations

import time
from abc import abstractmethod

import torch

from benchmarks.turns import Sampler
from shoal.train._runs.devices import fast_matmul

__all__ = ["Exercise"]

_WARM_UP_SHARE = 0.1
"""The share of a round's time that is spent before the measurement to warm up caches."""


class Exercise(Sampler):
    """Samples how often ``once`` is done per second, in its units.

    Args:
        device: The device of networks. Work on a GPU counts when it is finished.
    """

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)

    @abstractmethod
    def once(self) -> int:
        """Do the smallest indivisible part of the work and return its size."""

    def sample(self, seconds: float) -> float:
        """Repeat the work for this time and return the amount per second."""
        self.repeat(_WARM_UP_SHARE * seconds)
        done, elapsed = self.repeat(seconds)
        return done / elapsed

    def repeat(self, seconds: float) -> tuple[int, float]:
        """Repeat the work for this time, at least once; return its amount and the elapsed time."""
        done, elapsed = 0, 0.0
        # A run multiplies matrices with this precision; all contenders do.
        with fast_matmul(self._device.type):
            self._synchronize()
            start = time.perf_counter()
            while not done or elapsed < seconds:
                done += self.once()
                self._synchronize()
                elapsed = time.perf_counter() - start
        return done, elapsed

    def _synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()
