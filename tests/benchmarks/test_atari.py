"""The benchmark of Atari games measures what is required of them."""

import pytest

from benchmarks.atari import REQUIRED
from benchmarks.contenders import CONTENDERS
from benchmarks.workloads import ATARI_ACTIONS, WORKLOADS


def test_required_figures_are_about_what_there_is():
    for figure in REQUIRED:
        if figure.contest is not None:
            workload, _, names = figure.contest
            assert all(CONTENDERS[name].supports(workload) for name in names)


@pytest.mark.parametrize("name", ["shoal-atari-1", "ale-py", "gymnasium-atari", "sb3-atari"])
def test_contenders_step_games(name):
    contender = CONTENDERS[name]
    workload = "pong-resets" if contender.supports("pong-resets") else "pong"
    vector = contender.open(WORKLOADS[workload], 2)
    steps, seconds = vector.step_many(0.01)
    assert steps > 0 < seconds
    vector.close()


def test_actions_are_those_of_the_games():
    for name, count in ATARI_ACTIONS.items():
        env = WORKLOADS[name].make()
        assert env.action_space.n == count
        env.close()
