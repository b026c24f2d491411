"""Shoal's ``send`` and ``recv`` with partial batches."""

from __future__ import annotations

import time
from itertools import cycle
from typing import Any

from shoal._bench.contenders.base import SEED, Contender, Vector, action_batches
from shoal._bench.contenders.shoal_vectors import PACKAGES
from shoal._bench.workload import Workload

__all__ = ["FirstCome", "ShoalFirstCome"]


class ShoalFirstCome(Contender):
    """Worker processes whose slots are sent again as soon as a quarter of them was received."""

    name = "shoal-first-come"
    packages = PACKAGES

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its processes."""
        import shoal

        envs = shoal.make(workload.make, num_envs=num_envs, backend="process", caller_works=False)
        envs.reset(seed=SEED)
        vector = FirstCome(envs, workload, min_slots=max(1, num_envs // 4))
        vector.note = str(envs.plan)
        return vector


class FirstCome(Vector):
    """Slots that are sent again in the order in which they finish.

    Args:
        envs: A Shoal vector after its reset.
        workload: The workload of its environments.
        min_slots: The minimum number of slots to receive at once.
    """

    def __init__(self, envs: Any, workload: Workload, min_slots: int) -> None:
        self._envs = envs
        self._min_slots = min_slots
        self._actions = cycle(action_batches(workload, envs.num_envs))

    def step_many(self, seconds: float) -> tuple[int, float]:
        """Keep all slots in flight, then wait for the last of them; count the received slots."""
        envs, received, elapsed = self._envs, 0, 0.0
        start = time.perf_counter()
        envs.send(next(self._actions))
        while elapsed < seconds:
            slots = envs.recv(self._min_slots).slots
            envs.send(next(self._actions)[slots], slots)
            received += len(slots)
            elapsed = time.perf_counter() - start
        received += len(envs.recv().slots)
        return received, time.perf_counter() - start

    def close(self) -> None:
        """Close the environments and end their processes."""
        self._envs.close()
