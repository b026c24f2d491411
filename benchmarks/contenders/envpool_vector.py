"""EnvPool: environments of its own in C++, on threads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.contenders.base import SEED, Contender, Lockstep, Vector, action_batches
from benchmarks.workloads import Workload

__all__ = ["EnvPool", "EnvPoolAsync"]


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


class EnvPoolAsync(EnvPool):
    """EnvPool in its asynchronous mode: half of the environments come back at a time."""

    name = "envpool-async"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector and its threads, and have all environments in flight."""
        import envpool

        batch = max(1, num_envs // 2)
        envs = envpool.make_gymnasium("CartPole-v1", num_envs=num_envs, batch_size=batch, seed=SEED)
        envs.async_reset()
        actions = [
            batch_of_actions[:batch].astype(np.int32)
            for batch_of_actions in action_batches(workload, num_envs)
        ]

        def step(given: npt.NDArray[np.int32]) -> object:
            results = envs.recv()
            envs.send(given, results[-1]["env_id"])
            return results

        return Lockstep(step, actions, envs.close)
