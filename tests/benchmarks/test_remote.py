"""The benchmark of remote vectors measures remote vectors."""

import numpy as np
import pytest

from benchmarks.remote.null import NUM_SLOTS, OUTCOME
from benchmarks.remote.shoal_vectors import ShoalVector
from benchmarks.remote.situations import milliseconds_beside_slow_slots, worth_of_two_groups


@pytest.mark.parametrize("way", ["tcp", "unix", "shared memory"])
def test_every_way_gives_what_the_baselines_give(way):
    vector = ShoalVector(way)
    try:
        outcome = vector.step(np.zeros(NUM_SLOTS, np.int64))
        for found, expected in zip(outcome, OUTCOME, strict=True):
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
    finally:
        vector.close()


def test_situations_are_measured():
    assert 0 < milliseconds_beside_slow_slots(attempts=1) < 900
    assert worth_of_two_groups(rounds=1, steps=3, delay=0.01) > 1.2
