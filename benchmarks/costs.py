"""The overhead of Shoal: time per slot, start-up time, and memory of workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import shoal
from benchmarks.turns import Measuring, Sampler, Samplers
from benchmarks.workloads import WORKLOADS
from shoal._bench.contenders.base import SEED, Lockstep, Vector, action_batches, open_lockstep
from shoal._bench.workload import Environment
from shoal.vector import AsyncVectorEnv

__all__ = ["StartUp", "StepOverhead", "WorkerMemory", "samplers"]

_NOOP = WORKLOADS["noop"]
_CARTPOLE = WORKLOADS["cartpole"].make


def samplers(workload: str, size: int, settings: Measuring) -> Samplers:  # noqa: ARG001
    """Return the makers of all samplers of a cell."""
    makers: dict[str, Samplers] = {
        "step-overhead": {"shoal-inline": partial(StepOverhead, size)},
        "startup": {
            "shoal-process": partial(StartUp, partial(_worker_processes, size)),
            "AsyncVectorEnv": partial(StartUp, partial(_async_vector_env, size)),
        },
        "worker-memory": {"shoal-process": partial(WorkerMemory, size)},
    }
    return makers[workload]


class StepOverhead(Sampler):
    """The microseconds per slot by which a Shoal step takes longer than a bare loop.

    Both step the same environments, which do nothing.
    """

    def __init__(self, num_envs: int) -> None:
        envs = [_NOOP.make() for _ in range(num_envs)]
        given = shoal.make([partial(_same, env) for env in envs], backend="inline")
        self._vector = open_lockstep(given, _NOOP)
        actions = action_batches(_NOOP, num_envs)
        self._bare = Lockstep(partial(_step_each, envs), actions, close=lambda: None)
        self._is_reversed = False

    def sample(self, seconds: float) -> float:
        """Measure both, one right after the other and in the other order the next time."""
        order = [self._vector, self._bare]
        if self._is_reversed:
            order.reverse()
        self._is_reversed = not self._is_reversed
        taken = {each: _microseconds_per_slot(each, seconds) for each in order}
        return taken[self._vector] - taken[self._bare]

    def close(self) -> None:
        """Close the vector."""
        self._vector.close()


class StartUp(Sampler):
    """The seconds from the constructor of a vector to its first observations."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def sample(self, seconds: float) -> float:  # noqa: ARG002
        """Start and close a vector once."""
        start = time.perf_counter()
        envs = self._make()
        try:
            envs.reset(seed=SEED)
            return time.perf_counter() - start
        finally:
            envs.close()


class WorkerMemory(Sampler):
    """The megabytes by which each additional worker process increases the memory of a vector.

    Memory that processes share is divided among them.
    """

    def __init__(self, num_envs: int) -> None:
        self._num_envs = num_envs

    def sample(self, seconds: float) -> float:
        """Compare few workers with as many as half of the environments."""
        few, many = max(1, self._num_envs // 6), self._num_envs // 2
        more, less = (self._megabytes(workers, seconds) for workers in (many, few))
        return (more - less) / (many - few)

    def _megabytes(self, workers: int, seconds: float) -> float:
        others = _children()
        options: dict[str, Any] = {"backend": "process", "workers": workers, "caller_works": False}
        envs = shoal.make(_NOOP.make, self._num_envs, **options)
        try:
            open_lockstep(envs, _NOOP).step_many(seconds)
            return sum(_proportional_megabytes(pid) for pid in _children() - others)
        finally:
            envs.close()


def _worker_processes(num_envs: int) -> Any:
    return shoal.make(_CARTPOLE, num_envs=num_envs, backend="process")


def _async_vector_env(num_envs: int) -> Any:
    return AsyncVectorEnv([_CARTPOLE] * num_envs)


def _microseconds_per_slot(vector: Vector, seconds: float) -> float:
    steps, elapsed = vector.step_many(seconds)
    return elapsed / steps * 1e6


def _step_each(envs: Sequence[Environment], actions: Sequence[Any]) -> None:
    action = actions[0]
    for env in envs:
        env.step(action)


def _same(env: Environment) -> Environment:
    return env


def _children() -> set[int]:
    """Return the child processes of all threads of this process."""
    lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    return {int(pid) for text in lists for pid in text.split()}


def _proportional_megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    kibibytes = next(line.split()[1] for line in lines if line.startswith("Pss:"))
    return int(kibibytes) * 1024 / 1e6
