"""Gymnasium's own vectors, as they come."""

from __future__ import annotations

from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from shoal.bench.contenders.base import Contender, Vector, started
from shoal.bench.workload import Workload

__all__ = ["GymnasiumAsync", "GymnasiumSync"]


class GymnasiumSync(Contender):
    """``SyncVectorEnv``: one environment after the other."""

    name = "gymnasium-sync"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector in this process."""
        return started(SyncVectorEnv([workload.make] * num_envs), workload)


class GymnasiumAsync(Contender):
    """``AsyncVectorEnv``: a process for each environment, observations in shared memory."""

    name = "gymnasium-async"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector and its processes."""
        return started(AsyncVectorEnv([workload.make] * num_envs), workload)
