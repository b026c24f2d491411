"""The division of slots into contiguous shares of the workers and the caller."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from shoal.pools._cgroups import read_cpu_limit

__all__ = ["Shares", "available_core_numbers", "available_cores", "cores_from", "share_out"]


@dataclass(frozen=True)
class Shares:
    """The slots of each worker, as (first, last + 1); the remaining slots are the caller's."""

    workers: tuple[tuple[int, int], ...]
    num_envs: int

    @property
    def num_worker_slots(self) -> int:
        """How many slots are driven by workers; they come first."""
        return self.workers[-1][1]

    @property
    def own(self) -> int:
        """How many slots are driven by the caller; they come last."""
        return self.num_envs - self.num_worker_slots

    def owners(self) -> list[int]:
        """Return the worker of each slot; the number of workers stands for the caller."""
        owners = [len(self.workers)] * self.num_envs
        for worker, (first, last) in enumerate(self.workers):
            owners[first:last] = [worker] * (last - first)
        return owners


def share_out(num_envs: int, workers: int | None, caller_works: bool) -> Shares:
    """Divide slots as evenly as possible, with the smallest share for the caller.

    Args:
        num_envs: The number of slots.
        workers: The number of workers; by default as many as keep every core busy, including the
            caller if it works. Never more than there are slots.
        caller_works: Whether the caller takes a share. A single slot always goes to a worker.

    >>> share_out(8, workers=2, caller_works=True).workers
    ((0, 3), (3, 6))
    >>> share_out(8, workers=2, caller_works=False).workers
    ((0, 4), (4, 8))
    """
    caller = int(caller_works and num_envs > 1)
    if workers is None:
        workers = max(1, available_cores() - caller)
    elif isinstance(workers, bool) or not hasattr(workers, "__index__") or workers < 1:
        raise ValueError(f"workers must be a positive integer, got {workers!r}")
    workers = min(workers.__index__(), num_envs - caller)
    size, larger = divmod(num_envs, workers + caller)
    bounds, first = [], 0
    for worker in range(workers):
        last = first + size + (worker < larger)
        bounds.append((first, last))
        first = last
    return Shares(tuple(bounds), num_envs)


def available_cores() -> int:
    """Return how many cores this process may use by its affinity and its control groups.

    A fraction of a core counts as one.
    """
    cores = len(available_core_numbers())
    quota = read_cpu_limit()
    return max(1, min(cores, math.ceil(quota))) if quota else cores


def available_core_numbers() -> list[int]:
    """Return the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return [*range(os.cpu_count() or 1)]


def cores_from(first: int) -> list[int]:
    """Return the cores that this process may run on, rotated so that ``first`` is the first.

    Raises:
        ValueError: This process may not run on ``first``.
    """
    cores = available_core_numbers()
    if first not in cores:
        raise ValueError(
            f"thread_affinity_offset is {first}, but the cores of this process are {cores}"
        )
    start = cores.index(first)
    return cores[start:] + cores[:start]
