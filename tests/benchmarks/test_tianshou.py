"""Tianshou's contenders collect."""

import pytest

from benchmarks.contenders import CONTENDERS
from benchmarks.workloads import WORKLOADS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shoal-tianshou", "shoal-tianshou-python", "tianshou-dummy"])
def test_contenders_collect(name):
    vector = CONTENDERS[name].open(WORKLOADS["cartpole"], 2)
    steps, seconds = vector.step_many(0.01)
    assert steps >= 64
    assert seconds >= 0.01
    vector.close()
