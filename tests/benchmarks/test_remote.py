"""The samplers of remote vectors measure known times and report wrong results."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")
pytest.importorskip("websockets")

from benchmarks.remote.cells import StepTime
from benchmarks.remote.null import NUM_SLOTS, OUTCOME
from benchmarks.remote.scenarios import Groups, RecvBesideSlow
from benchmarks.remote.shoal_vectors import ShoalVector


@pytest.mark.parametrize("transport", ["tcp", "unix", "shared memory"])
def test_shoal_returns_arrays_like_those_of_the_baselines(transport: Any) -> None:
    vector = ShoalVector(transport)
    try:
        outcome = vector.step(np.zeros(NUM_SLOTS, np.int64))
        for found, expected in zip(outcome, OUTCOME, strict=True):
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
    finally:
        vector.close()


def test_a_step_time_is_the_median_in_microseconds() -> None:
    class Slow:
        steps = 0

        def step(self, actions: Any) -> None:
            assert actions.shape == (NUM_SLOTS,)
            self.steps += 1
            # One step of ten is far slower, which the median ignores.
            time.sleep(0.1 if self.steps % 10 == 0 else 0.005)

        def close(self) -> None:
            self.steps = -1

    vector = Slow()
    sampler = StepTime(lambda: vector)
    assert 5_000 <= sampler.sample(0.2) < 20_000
    sampler.close()
    assert vector.steps == -1


def test_recv_returns_the_fast_slots_before_the_slow_ones() -> None:
    sampler = RecvBesideSlow(slow=2, seconds=1.0)
    try:
        start = time.monotonic()
        assert sampler.sample(0.0) < 1000
        # The sample ends with the slow slots, which must have been slow.
        assert time.monotonic() - start >= 1.0
    finally:
        sampler.close()


@pytest.mark.parametrize("slots", [range(4, 64), range(3, 63)])
def test_only_the_first_recv_is_timed_and_a_slow_slot_in_it_is_an_error(slots: range) -> None:
    received = []

    def recv(min_slots: int | None = None) -> Any:
        received.append(min_slots)
        time.sleep(0.5 if min_slots is None else 0.05)
        return SimpleNamespace(slots=np.array(slots))

    sampler = RecvBesideSlow.__new__(RecvBesideSlow)
    sampler._slow = 4
    sampler._envs = SimpleNamespace(send=lambda _: time.sleep(0.05), recv=recv)
    if slots[0] < 4:
        with pytest.raises(RuntimeError, match="recv returned a slow slot"):
            sampler.sample(0.0)
        return
    assert 100 <= sampler.sample(0.0) < 500
    assert received == [60, None]


def test_one_group_pays_the_latency_of_every_step_and_two_groups_share_it() -> None:
    round_trip = 0.04
    limit = NUM_SLOTS / 2 / round_trip
    rates = {}
    for in_flight in (1, 2):
        groups = Groups(in_flight, steps=5, round_trip=round_trip)
        try:
            rates[in_flight] = groups.sample(0.0)
        finally:
            groups.close()
    assert 0.3 * limit < rates[1] <= limit
    assert rates[1] < rates[2] <= 2 * limit
