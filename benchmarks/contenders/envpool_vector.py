"""EnvPool: environments of its own in C++, on threads."""

from __future__ import annotations

import numpy as np

from benchmarks.contenders.base import SEED, Contender, Lockstep, Vector, action_batches
from benchmarks.workloads import Workload

__all__ = ["EnvPool"]


class EnvPool(Contender):
    """EnvPool in its synchronous mode, which cannot step an environment written in Python."""

    name = "envpool"
    peer = "envpool"
    packages = ("envpool", "gymnasium", "numpy")

    def supports(self, workload: str) -> bool:
        """Only what it has an environment of its own for."""
        return workload == "cartpole"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector and its threads."""
        import envpool

        envs = envpool.make_gymnasium("CartPole-v1", num_envs=num_envs, seed=SEED)
        envs.reset()
        actions = [batch.astype(np.int32) for batch in action_batches(workload, num_envs)]
        return Lockstep(envs.step, actions, envs.close)
