"""Gymnasium's vectors, with default settings."""

from __future__ import annotations

import gymnasium
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from shoal._bench.contenders.base import Contender, Vector, open_lockstep
from shoal._bench.workload import Workload

__all__ = ["GymnasiumAsync", "GymnasiumOwn", "GymnasiumSync"]


class GymnasiumSync(Contender):
    """``SyncVectorEnv``: steps one environment after the other."""

    name = "gymnasium-sync"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector in this process."""
        return open_lockstep(SyncVectorEnv([workload.make] * num_envs), workload)


class GymnasiumAsync(Contender):
    """``AsyncVectorEnv``: a process for each environment, observations in shared memory."""

    name = "gymnasium-async"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its processes."""
        return open_lockstep(AsyncVectorEnv([workload.make] * num_envs), workload)


class GymnasiumOwn(Contender):
    """The vector that is registered for an environment, created by ``gymnasium.make_vec``."""

    name = "gymnasium-own"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector."""
        if workload.id is None:
            raise ValueError(f"{workload.name} is not registered with Gymnasium")
        workload.make().close()  # imports the modules that the environment needs
        envs = gymnasium.make_vec(workload.id, num_envs, vectorization_mode="vector_entry_point")
        return open_lockstep(envs, workload)
