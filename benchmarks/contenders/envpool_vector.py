"""EnvPool, in a peer environment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers import InPeer
from shoal._bench.contenders import envpool_vector
from shoal._bench.contenders.base import Vector
from shoal._bench.contenders.envpool_vector import make_envpool
from shoal._bench.workload import Workload

__all__ = ["EnvPool", "EnvPoolAsync"]


class EnvPool(InPeer, envpool_vector.EnvPool):
    """EnvPool in synchronous mode."""

    peer = "envpool"

    def supports(self, workload: str) -> bool:
        """Return whether EnvPool has this environment."""
        return workload == "cartpole"


class EnvPoolAsync(EnvPool):
    """EnvPool in asynchronous mode, with batches of half of the environments."""

    name = "envpool-async"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its threads."""
        batch = max(1, num_envs // 2)
        envs, actions = make_envpool(workload, num_envs, batch_size=batch)
        return _Halves(envs, [chosen[:batch] for chosen in actions], num_envs // batch)


class _Halves(Vector):
    """Environments that are sent and received in batches of equal size.

    Args:
        envs: A vector of EnvPool in asynchronous mode.
        actions: Batches of actions, used in turn.
        batches: The number of batches into which the environments are divided.
    """

    def __init__(self, envs: Any, actions: Sequence[npt.NDArray[np.int32]], batches: int) -> None:
        self._envs = envs
        self._actions = cycle(actions)
        envs.async_reset()
        self._idle = [envs.recv()[-1]["env_id"] for _ in range(batches)]

    def step_many(self, seconds: float) -> tuple[int, float]:
        """Keep all environments in flight, then wait for the last of them."""
        envs, received, elapsed = self._envs, 0, 0.0
        start = time.perf_counter()
        for numbers in self._idle:
            envs.send(next(self._actions), numbers)
        while elapsed < seconds:
            numbers = envs.recv()[-1]["env_id"]
            envs.send(next(self._actions), numbers)
            received += len(numbers)
            elapsed = time.perf_counter() - start
        self._idle = [envs.recv()[-1]["env_id"] for _ in self._idle]
        received += sum(map(len, self._idle))
        return received, time.perf_counter() - start

    def close(self) -> None:
        """Close the vector."""
        self._envs.close()
