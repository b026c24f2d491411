"""Atari contenders and their start-up times."""

import sys
import time
from types import ModuleType

import pytest

from benchmarks.atari_start import seconds_to_start
from benchmarks.contenders import CONTENDERS
from benchmarks.workloads import ATARI_ACTIONS, WORKLOADS


@pytest.mark.parametrize("name", ["shoal-atari-1", "ale-py", "gymnasium-atari", "sb3-atari"])
def test_contenders_step_all_slots_of_a_game(name):
    contender = CONTENDERS[name]
    workload = "pong-resets" if contender.supports("pong-resets") else "pong"
    vector = contender.open(WORKLOADS[workload], 2)
    steps, seconds = vector.step_many(0.01)
    assert steps >= 2
    assert steps % 2 == 0
    assert seconds >= 0.01
    vector.close()


def test_actions_are_those_of_the_games():
    for name, count in ATARI_ACTIONS.items():
        env = WORKLOADS[name].make()
        assert env.action_space.n == count
        env.close()


@pytest.mark.parametrize(("steps", "least"), [(0, 0.2), (1, 0.4)])
def test_the_start_is_timed_from_the_constructor_to_the_last_step(monkeypatch, steps, least):
    class Slow:
        def __init__(self, game, num_envs):
            assert (game, num_envs) == ("pong", 2)
            time.sleep(0.1)

        def reset(self, seed):
            time.sleep(0.1)

        def step(self, actions):
            assert actions.shape == (2,)
            time.sleep(0.2)

        def close(self):
            time.sleep(1.0)

    module = ModuleType("slow_vectors")
    module.AtariVectorEnv = Slow
    monkeypatch.setitem(sys.modules, "slow_vectors", module)
    assert least <= seconds_to_start("slow_vectors", 2, steps) < least + 0.8
