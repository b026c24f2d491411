"""What a contender does in a cell, over and over, while it is measured."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

import torch

__all__ = ["Exercise"]

_WARM_UP_SHARE = 0.1
"""The part of a round's time that is spent first and not measured, to get back caches."""


class Exercise(ABC):
    """Something that can be gone on with.

    Args:
        device: Where it computes. What is asked of a GPU counts when it is done.
    """

    note: str = ""
    """What a report should tell of it besides its rates."""

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)

    @abstractmethod
    def once(self) -> int:
        """Do the smallest part that is done as a whole; returns how much that was."""

    def take_round(self, seconds: float) -> float:
        """Go on for about so long; returns how much was done in a second."""
        self.go_on(_WARM_UP_SHARE * seconds)
        done, elapsed = self.go_on(seconds)
        return done / elapsed

    def go_on(self, seconds: float) -> tuple[int, float]:
        """Go on for so long, at least once; returns how much was done, and the seconds it took."""
        done, elapsed = 0, 0.0
        self._finish()
        start = time.perf_counter()
        while not done or elapsed < seconds:
            done += self.once()
            self._finish()
            elapsed = time.perf_counter() - start
        return done, elapsed

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of what it holds."""

    def _finish(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()
