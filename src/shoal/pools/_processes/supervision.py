"""When a worker is lost: what counts as lost, how often that may happen, and what comes after."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

import numpy as np

__all__ = ["HangWatch", "OnCrash", "RestartLimit", "SlotSeeds"]

OnCrash = Literal["raise", "restart"]

Clock = Callable[[], float]


class RestartLimit:
    """How many restarts there may be within a minute.

    >>> limit = RestartLimit(2, clock=iter([0.0, 1.0, 2.0, 61.5]).__next__)
    >>> [limit.allows() for _ in range(4)]
    [True, True, False, True]
    """

    def __init__(self, per_minute: int, clock: Clock = time.monotonic) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._times: deque[float] = deque()

    def allows(self) -> bool:
        """Whether there may be another one now, which is then counted."""
        now = self._clock()
        while self._times and now - self._times[0] >= 60.0:
            self._times.popleft()
        if len(self._times) >= self.per_minute:
            return False
        self._times.append(now)
        return True


class HangWatch:
    """Notices a worker that does not get on with its work.

    Args:
        seconds: How long one slot may take.
        clock: Seconds, from any beginning.
    """

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._progress: dict[int, tuple[object, float]] = {}

    def hangs(self, worker: int, progress: object) -> bool:
        """Whether a busy worker has made no progress for too long; its progress is any value."""
        now = self._clock()
        known = self._progress.get(worker)
        if known is None or known[0] != progress:
            self._progress[worker] = (progress, now)
            return False
        return now - known[1] >= self.seconds

    def forget(self, worker: int) -> None:
        """Start anew with this worker."""
        self._progress.pop(worker, None)


class SlotSeeds:
    """The seeds that slots were reset with, and those that follow from them after a crash."""

    def __init__(self, num_envs: int) -> None:
        self._given: list[int | None] = [None] * num_envs
        self._crashes = [0] * num_envs

    def note(self, slot: int, seed: int | None) -> None:
        """Take note of the seed of a reset; without one, the slot's randomness goes on."""
        if seed is not None:
            self._given[slot] = int(seed)
            self._crashes[slot] = 0

    def after_crash(self, slot: int) -> int | None:
        """A new seed, the same in every run with the same seeds; None for a slot without one.

        >>> seeds = SlotSeeds(num_envs=2)
        >>> seeds.note(0, 7)
        >>> seeds.after_crash(0), seeds.after_crash(0), seeds.after_crash(1)
        (2028854884, 3835300069, None)
        """
        self._crashes[slot] += 1
        given = self._given[slot]
        if given is None:
            return None
        sequence = np.random.SeedSequence([abs(given), slot, self._crashes[slot]])
        return int(sequence.generate_state(1)[0])
