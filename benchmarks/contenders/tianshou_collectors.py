"""Tianshou's collector on Shoal's vector and on Tianshou's own.

The unit is a transition in the buffer: policy, step, reset and storage together. The policy picks
actions at random, so that the part that is equal for all contenders takes little time.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

from benchmarks.workloads import GYMNASIUM_IDS
from shoal._bench.contenders.base import SEED, Contender, Vector
from shoal._bench.workload import Workload

__all__ = ["ShoalTianshou", "TianshouDummy", "TianshouShmem", "TianshouSubproc"]

_STEPS_PER_CALL = 32
"""The steps of each slot in one call of ``collect``."""


class _Tianshou(Contender):
    packages: ClassVar[tuple[str, ...]] = ("tianshou", "torch", "gymnasium", "numpy")

    def supports(self, workload: str) -> bool:
        """Return whether the policy fits: it picks one of two actions."""
        return workload == "cartpole"


class ShoalTianshou(_Tianshou):
    """A vector of ``shoal.tianshou``."""

    packages = ("shoal", *_Tianshou.packages)

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self._options = options

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and a collector."""
        from shoal.tianshou import make

        return _Collecting(make(GYMNASIUM_IDS[workload.name], num_envs, **self._options))


class TianshouDummy(_Tianshou):
    """``DummyVectorEnv``: environments in the calling process."""

    name = "tianshou-dummy"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector in this process, and a collector."""
        from tianshou.env import DummyVectorEnv

        return _Collecting(DummyVectorEnv([workload.make] * num_envs))


class TianshouSubproc(_Tianshou):
    """``SubprocVectorEnv``: one process per environment."""

    name = "tianshou-subproc"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector, its processes and a collector."""
        from tianshou.env import SubprocVectorEnv

        # A forked process is as fast as a spawned one and does not import torch again.
        return _Collecting(SubprocVectorEnv([workload.make] * num_envs, context="fork"))


class TianshouShmem(_Tianshou):
    """``ShmemVectorEnv``: one process per environment, observations in shared memory."""

    name = "tianshou-shmem"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector, its processes and a collector."""
        from tianshou.env import ShmemVectorEnv

        return _Collecting(ShmemVectorEnv([workload.make] * num_envs))


class _Collecting(Vector):
    def __init__(self, envs: Any) -> None:
        import numpy as np
        import torch
        from tianshou.algorithm.algorithm_base import Policy
        from tianshou.data import Batch, Collector, VectorReplayBuffer

        class Coin(Policy):
            def forward(self, batch: Any, state: Any = None, **_: Any) -> Any:
                return Batch(act=generator.integers(0, 2, len(batch.obs)), state=state)

        torch.set_num_threads(1)
        generator = np.random.default_rng(SEED)
        count = len(envs)
        self._collector: Any = Collector(
            Coin(envs.action_space[0]),
            envs,
            VectorReplayBuffer(1000 * count, count),
            raise_on_nan_in_buffer=False,
        )
        self._collector.reset(gym_reset_kwargs={"seed": SEED})
        self._steps = _STEPS_PER_CALL * count

    def step_many(self, seconds: float) -> tuple[int, float]:
        """Collect for about this time and return the transitions and the elapsed time."""
        steps, elapsed = 0, 0.0
        start = time.perf_counter()
        while elapsed < seconds:
            steps += self._collector.collect(n_step=self._steps).n_collected_steps
            elapsed = time.perf_counter() - start
        return steps, elapsed

    def close(self) -> None:
        """Close the collector and its vector."""
        self._collector.close()
