"""Detection of workers that hang."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["HangDetector"]


class HangDetector:
    """Detects workers that make no progress.

    Args:
        seconds: How long one slot may take.
        clock: Returns the current time in seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._progress: dict[int, tuple[object, float]] = {}

    def hangs(self, worker: int, progress: object) -> bool:
        """Whether a busy worker has made no progress for too long; progress is any value."""
        now = self._clock()
        last = self._progress.get(worker)
        if last is None or last[0] != progress:
            self._progress[worker] = (progress, now)
            return False
        return now - last[1] >= self.seconds

    def forget(self, worker: int) -> None:
        """Discard the progress of a worker that is replaced."""
        self._progress.pop(worker, None)
