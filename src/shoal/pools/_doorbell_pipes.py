"""The doorbell of a pool: futexes where the system has them, or pipes."""

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
        """All ends, for one process with everyone in it; empty for futexes."""
        if not self._pipes:
            return []
        *work, done = self._pipes
        return [[end for end, _ in work], [end for _, end in work], [done[0]], [done[1]]]

    def ends_of(self, worker: int) -> list[int]:
        """The descriptors that the process of this worker needs: where it waits, where it rings."""
        return [self._pipes[worker][0], self._pipes[-1][1]] if self._pipes else []

    @staticmethod
    def attached(worker: int, workers: int, descriptors: list[int]) -> list[list[int]]:
        """All ends as the process of a worker has them, from what :meth:`ends_of` gave."""
        if not descriptors:
            return []
        waits = [ABSENT] * workers
        waits[worker], rings = descriptors
        return [waits, [], [ABSENT], [rings]]

    def close(self) -> None:
        """Close all pipes."""
        pipes, self._pipes = self._pipes, []
        for pipe in pipes:
            for end in pipe:
                os.close(end)
