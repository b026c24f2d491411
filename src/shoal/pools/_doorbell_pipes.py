"""The doorbell of a pool: futexes if the system has them, else pipes."""

from __future__ import annotations

import os
from typing import Literal, get_args

from shoal import _native

__all__ = ["Doorbell", "DoorbellPipes"]

Doorbell = Literal["auto", "futex", "pipe"]

ABSENT = -1
"""Stands for an end of a pipe that a process does not have."""


class DoorbellPipes:
    """The pipes of a doorbell: one for each worker and one for the caller, or none for futexes."""

    def __init__(self, kind: Doorbell, workers: int) -> None:
        if kind not in get_args(Doorbell):
            raise ValueError(f"doorbell must be one of {get_args(Doorbell)}, got {kind!r}")
        if kind == "futex" and not _native.has_futex():
            raise ValueError("this system has no futexes: use doorbell='pipe'")
        use_pipes = kind == "pipe" or not _native.has_futex()
        self._workers = workers
        self._pipes = [os.pipe() for _ in range(workers + 1)] if use_pipes else []

    def ends(self) -> list[list[int]]:
        """Return the ends of all pipes for the caller's process; empty for futexes."""
        if not self._pipes:
            return []
        *work, done = self._pipes
        return [[end for end, _ in work], [end for _, end in work], [done[0]], [done[1]]]

    def ends_of(self, worker: int) -> list[int]:
        """Return the ends of this worker's process: where it waits, and where it rings."""
        return [self._pipes[worker][0], self._pipes[-1][1]] if self._pipes else []

    @staticmethod
    def attached(worker: int, workers: int, descriptors: list[int]) -> list[list[int]]:
        """Return the ends of all pipes for a worker process, from those of :meth:`ends_of`."""
        if not descriptors:
            return []
        work_ends = [ABSENT] * workers
        work_ends[worker], done_end = descriptors
        return [work_ends, [], [ABSENT], [done_end]]

    def close(self) -> None:
        """Close all pipes."""
        pipes, self._pipes = self._pipes, []
        for pipe in pipes:
            for end in pipe:
                os.close(end)
