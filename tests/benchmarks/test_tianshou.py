"""The benchmark of Tianshou's collectors measures what is required of them."""

import pytest

from benchmarks.contenders import CONTENDERS
from benchmarks.tianshou import REQUIRED
from benchmarks.workloads import WORKLOADS


def test_required_figures_are_about_what_there_is():
    for figure in REQUIRED:
        workload, _, names = figure.contest
        assert all(CONTENDERS[name].supports(workload) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shoal-tianshou", "shoal-tianshou-python", "tianshou-dummy"])
def test_contenders_collect(name):
    vector = CONTENDERS[name].open(WORKLOADS["cartpole"], 2)
    steps, seconds = vector.step_many(0.01)
    assert steps >= 64
    assert seconds > 0
    vector.close()
