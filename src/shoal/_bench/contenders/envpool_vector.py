"""EnvPool: built-in environments in C++, stepped by threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._bench.contenders.base import SEED, Contender, Lockstep, Vector, action_batches
from shoal._bench.workload import Workload

__all__ = ["EnvPool", "make_envpool"]


class EnvPool(Contender):
    """EnvPool in its synchronous mode; supports only its built-in environments."""

    name = "envpool"
    packages = ("envpool", "gymnasium", "numpy")

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its threads."""
        envs, actions = make_envpool(workload, num_envs)
        envs.reset()
        return Lockstep(envs.step, actions, envs.close)


def make_envpool(
    workload: Workload, num_envs: int, **options: Any
) -> tuple[Any, list[npt.NDArray[Any]]]:
    """Create EnvPool's vector for the workload's id, and actions of its dtype."""
    import envpool

    # EnvPool's ids of Atari games lack the namespace.
    task = (workload.id or workload.name).removeprefix("ALE/")
    if task not in envpool.list_all_envs():
        raise LookupError(f"EnvPool has no environment {task}")
    envs = envpool.make_gymnasium(task, num_envs=num_envs, seed=SEED, **options)
    dtype = np.int32 if envs.action_space.dtype == np.int64 else envs.action_space.dtype
    return envs, [batch.astype(dtype) for batch in action_batches(workload, num_envs)]
