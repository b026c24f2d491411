"""Tianshou's collector on Shoal's vector and on Tianshou's own.

What is counted are transitions in the buffer: policy, stepping, resets and storing together. The
policy tosses a coin, so that as little as can be is the same for all.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

from benchmarks.workloads import GYMNASIUM_IDS
from shoal._bench.contenders.base import SEED, Contender, Vector
from shoal._bench.workload import Workload

__all__ = ["ShoalTianshou", "TianshouDummy", "TianshouShmem", "TianshouSubproc"]

_STEPS_AT_ONCE = 32
"""Of each slot, in one call of ``collect``."""


class _Tianshou(Contender):
    packages: ClassVar[tuple[str, ...]] = ("tianshou", "torch", "gymnasium", "numpy")

    def supports(self, workload: str) -> bool:
        """The coin is for an environment with two actions."""
        return workload == "cartpole"


class ShoalTianshou(_Tianshou):
    """A vector as ``shoal.tianshou`` makes it."""

    packages = ("shoal", *_Tianshou.packages)

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self._options = options

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector and a collector."""
        from shoal.tianshou import make

        return _Collecting(make(GYMNASIUM_IDS[workload.name], num_envs, **self._options))


class TianshouDummy(_Tianshou):
    """``DummyVectorEnv``: one environment after the other."""

    name = "tianshou-dummy"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector in this process, and a collector."""
        from tianshou.env import DummyVectorEnv

        return _Collecting(DummyVectorEnv([workload.make] * num_envs))


class TianshouSubproc(_Tianshou):
    """``SubprocVectorEnv``: a process for each environment."""

    name = "tianshou-subproc"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector and its processes, and a collector."""
        from tianshou.env import SubprocVectorEnv

        # A forked process steps as fast as any other, and need not import torch once more first.
        return _Collecting(SubprocVectorEnv([workload.make] * num_envs, context="fork"))


class TianshouShmem(_Tianshou):
    """``ShmemVectorEnv``: a process for each environment, observations in shared memory."""

    name = "tianshou-shmem"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector and its processes, and a collector."""
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
        self._steps = _STEPS_AT_ONCE * count

    def step_many(self, seconds: float) -> tuple[int, float]:
        """Collect for about so long."""
        steps, elapsed = 0, 0.0
        start = time.perf_counter()
        while elapsed < seconds:
            steps += self._collector.collect(n_step=self._steps).n_collected_steps
            elapsed = time.perf_counter() - start
        return steps, elapsed

    def close(self) -> None:
        """Close the collector and its vector."""
        self._collector.close()
