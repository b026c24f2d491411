"""Shoal's own costs: the samplers measure known times and sizes."""

from __future__ import annotations

import time
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from benchmarks import costs
from benchmarks.costs import StartUp, StepOverhead, WorkerMemory
from benchmarks.workloads import WORKLOADS
from shoal._bench.contenders.base import Lockstep
from shoal._bench.workload import Environment, Workload

BALLAST_MEGABYTES = 80


@cache
def ballast() -> Any:
    """Memory that every process holds once."""
    return np.ones(BALLAST_MEGABYTES * 125_000)


def heavy() -> Environment:
    ballast()
    return WORKLOADS["noop"].make()


def test_the_overhead_is_the_difference_to_the_bare_loop_per_slot() -> None:
    sampler = StepOverhead(4)
    batches: list[Any] = [np.zeros(4)]
    sampler._vector.close()
    sampler._vector = Lockstep(lambda _: time.sleep(0.02), batches, close=lambda: None)
    sampler._bare = Lockstep(lambda _: time.sleep(0.004), batches, close=lambda: None)
    # 16 ms for four slots; sleeping may take longer, but hardly twice as long.
    for _ in range(2):
        assert 3000 < sampler.sample(0.1) < 8000
    sampler.close()


def test_the_overhead_of_shoal_is_small() -> None:
    sampler = StepOverhead(16)
    assert abs(sampler.sample(0.05)) < 20
    sampler.close()


def test_start_up_ends_with_the_first_observations() -> None:
    closed = []

    class Slow:
        def __init__(self, num_envs: int) -> None:
            time.sleep(0.1)

        def reset(self, seed: int) -> None:
            time.sleep(0.1)

        def close(self) -> None:
            closed.append(True)
            time.sleep(1.0)

    assert 0.2 <= StartUp(partial(Slow, 1)).sample(0.0) < 1.0
    assert closed == [True]


def test_worker_memory_is_the_difference_between_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = WorkerMemory(4).sample(0.02)
    assert 5.0 < plain < 200.0
    monkeypatch.setattr(costs, "_NOOP", Workload("heavy", heavy))
    with_ballast = WorkerMemory(4).sample(0.02)
    assert 0.8 * BALLAST_MEGABYTES < with_ballast - plain < 1.2 * BALLAST_MEGABYTES
