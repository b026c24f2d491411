"""Gymnasium's own vectors, as they come."""

from __future__ import annotations

from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from benchmarks.contenders.base import SEED, Contender, Vector, action_batches
from benchmarks.workloads import Workload

__all__ = ["GymnasiumAsync", "GymnasiumSync"]


class GymnasiumSync(Contender):
    """``SyncVectorEnv``: one environment after the other."""

    name = "gymnasium-sync"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector in this process."""
        envs = SyncVectorEnv([workload.make] * num_envs)
        envs.reset(seed=SEED)
        return Vector(envs.step, action_batches(workload, num_envs), envs.close)


class GymnasiumAsync(Contender):
    """``AsyncVectorEnv``: a process for each environment, observations in shared memory."""

    name = "gymnasium-async"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector and its processes."""
        envs = AsyncVectorEnv([workload.make] * num_envs)
        envs.reset(seed=SEED)
        return Vector(envs.step, action_batches(workload, num_envs), envs.close)
