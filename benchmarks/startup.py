"""How long it takes to start worker processes with CartPole environments in them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import shoal
from benchmarks.workloads import WORKLOADS
from shoal._bench.contenders.base import SEED
from shoal._bench.results import Summary, summarize
from shoal.vector import AsyncVectorEnv

__all__ = ["STARTS", "measure_startup"]

_MAKE = WORKLOADS["cartpole"].make


def _made(num_envs: int) -> Any:
    return shoal.make(_MAKE, num_envs=num_envs, backend="process")


def _drop_in(num_envs: int) -> Any:
    return AsyncVectorEnv([_MAKE] * num_envs)


STARTS: dict[str, Callable[[int], Any]] = {
    "backend='process'": _made,
    "AsyncVectorEnv": _drop_in,
}
"""The ways to start, by name; each makes so many environments."""


def measure_startup(how: str, num_envs: int, attempts: int = 5) -> Summary:
    """Take the seconds from the call that makes the environments to their first observations."""
    seconds = []
    for _ in range(attempts):
        start = time.perf_counter()
        envs = STARTS[how](num_envs)
        try:
            envs.reset(seed=SEED)
            seconds.append(time.perf_counter() - start)
        finally:
            envs.close()
    return summarize(seconds)
