"""What Shoal itself costs for each slot, beyond the environment's own ``step``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import shoal
from benchmarks.workloads import WORKLOADS
from shoal._bench.contenders.base import Lockstep, Vector, action_batches, open_lockstep
from shoal._bench.results import Summary, summarize
from shoal._bench.workload import Environment

__all__ = ["measure_overhead"]

_WORKLOAD = WORKLOADS["noop"]


def measure_overhead(num_envs: int, rounds: int = 25, seconds: float = 0.05) -> Summary:
    """Take the microseconds per slot by which a Shoal step is longer than a bare loop.

    Both step the same environments, which do nothing, in this process, one right after the other
    in each round; the differences within the rounds are summed up.
    """
    envs = [_WORKLOAD.make() for _ in range(num_envs)]
    given = shoal.make([partial(_given, env) for env in envs], backend="inline")
    vector = open_lockstep(given, _WORKLOAD)
    actions = action_batches(_WORKLOAD, num_envs)
    bare = Lockstep(partial(_step_each, envs), actions, close=lambda: None)
    differences = []
    try:
        for turn in range(rounds):
            order = (vector, bare) if turn % 2 else (bare, vector)
            taken = {each: _microseconds_per_slot(each, seconds) for each in order}
            differences.append(taken[vector] - taken[bare])
    finally:
        vector.close()
    return summarize(differences)


def _microseconds_per_slot(vector: Vector, seconds: float) -> float:
    steps, elapsed = vector.step_many(seconds)
    return elapsed / steps * 1e6


def _step_each(envs: Sequence[Environment], actions: Sequence[Any]) -> None:
    action = actions[0]
    for env in envs:
        env.step(action)


def _given(env: Environment) -> Environment:
    return env
