"""When a lost worker, actor or session is replaced, and with which seeds its slots continue."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

__all__ = ["OnCrash", "RestartLimit", "RestartPolicy", "SlotSeeds"]

OnCrash = Literal["raise", "restart"]

_log = logging.getLogger("shoal")


class RestartLimit:
    """Limits how many restarts are allowed within a minute.

    >>> limit = RestartLimit(2, clock=iter([0.0, 1.0, 2.0, 61.5]).__next__)
    >>> [limit.allows() for _ in range(4)]
    [True, True, False, True]
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._times: deque[float] = deque()

    def allows(self) -> bool:
        """Whether a restart is allowed now; it is then counted."""
        now = self._clock()
        while self._times and now - self._times[0] >= 60.0:
            self._times.popleft()
        if len(self._times) >= self.per_minute:
            return False
        self._times.append(now)
        return True


class RestartPolicy:
    """What the loss of a worker means.

    Args:
        on_crash: ``"raise"``, or ``"restart"`` to replace the worker.
        per_minute: How many restarts are allowed within a minute.
    """

    def __init__(self, on_crash: OnCrash, per_minute: int) -> None:
        if on_crash not in get_args(OnCrash):
            raise ValueError(f"on_crash must be one of {get_args(OnCrash)}, got {on_crash!r}")
        self.restarts = on_crash == "restart"
        self._limit = RestartLimit(per_minute)

    def allows_restart(self, loss: BaseException) -> bool:
        """Whether to replace what was lost; if not, the loss is raised by the caller."""
        if not self.restarts:
            return False
        if not self._limit.allows():
            loss.add_note(f"shoal: there were {self._limit.per_minute} restarts within a minute")
            return False
        _log.warning("%s: starting a replacement", loss)
        return True


class SlotSeeds:
    """The seeds that slots were reset with, and those that follow from them after a crash."""

    def __init__(self, num_envs: int) -> None:
        self._seeds: list[int | None] = [None] * num_envs
        self._crashes = [0] * num_envs

    def note(self, slot: int, seed: int | None) -> None:
        """Note the seed of a reset; without one, the slot's randomness continues."""
        if seed is not None:
            self._seeds[slot] = int(seed)
            self._crashes[slot] = 0

    def after_crash(self, slot: int) -> int | None:
        """Return a new seed, the same in every run with the same seeds; None for no seed.

        >>> seeds = SlotSeeds(num_envs=2)
        >>> seeds.note(0, 7)
        >>> seeds.after_crash(0), seeds.after_crash(0), seeds.after_crash(1)
        (2028854884, 3835300069, None)
        """
        seed = self.next_after_crash(slot)
        self.note_crash(slot)
        return seed

    def next_after_crash(self, slot: int) -> int | None:
        """Return the seed that :meth:`after_crash` would return, without counting a crash."""
        seed = self._seeds[slot]
        if seed is None:
            return None
        sequence = np.random.SeedSequence([abs(seed), slot, self._crashes[slot] + 1])
        return int(sequence.generate_state(1)[0])

    def note_crash(self, slot: int) -> None:
        """Note that a slot was reset with the seed of :meth:`next_after_crash`."""
        self._crashes[slot] += 1
