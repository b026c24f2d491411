"""The start-up time of Atari vectors, in new processes."""

from __future__ import annotations

import time
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.alone import call_alone
from benchmarks.turns import Measuring, Sampler, Samplers
from shoal._bench.contenders.base import SEED

__all__ = ["AtariStart", "samplers", "seconds_to_start"]

_MODULES = {"shoal-atari": "shoal.atari", "ale-py": "ale_py.vector_env"}
_STEPS = {"pong-start": 0, "pong-first-step": 1}


def samplers(workload: str, size: int, settings: Measuring) -> Samplers:  # noqa: ARG001
    """Return the makers of all samplers of a cell."""
    steps = _STEPS[workload]
    return {name: partial(AtariStart, module, size, steps) for name, module in _MODULES.items()}


class AtariStart(Sampler):
    """The seconds to construct a vector, to reset it with a seed, and to step it."""

    def __init__(self, module: str, num_envs: int, steps: int) -> None:
        self._arguments = module, num_envs, steps

    def sample(self, seconds: float) -> float:  # noqa: ARG002
        """Start a vector once."""
        return call_alone(seconds_to_start, *self._arguments)


def seconds_to_start(module: str, num_envs: int, steps: int) -> float:
    """Start a vector in this process; the import of its module does not count."""
    vector_class: Any = import_module(module).AtariVectorEnv
    start = time.perf_counter()
    envs = vector_class("pong", num_envs)
    envs.reset(seed=SEED)
    for _ in range(steps):
        envs.step(np.zeros(num_envs, np.int64))
    seconds = time.perf_counter() - start
    envs.close()
    return seconds
