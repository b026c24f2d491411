"""Hockey contenders: the kernel and the Box2D scene."""

import numpy as np
import pytest

from benchmarks.contenders import CONTENDERS
from benchmarks.hockey_scene import HockeyScene
from benchmarks.workloads import WORKLOADS


@pytest.mark.parametrize("name", ["shoal-hockey", "shoal-hockey-1", "box2d"])
def test_contenders_step_hockey(name):
    contender = CONTENDERS[name]
    for workload in filter(contender.supports, WORKLOADS):
        vector = contender.open(WORKLOADS[workload], 20)
        steps, seconds = vector.step_many(0.01)
        assert steps % (16 if name == "box2d" else 20) == 0
        assert steps > 0
        assert seconds >= 0.01
        vector.close()


def test_the_scene_plays_whole_matches():
    scene, random, ends = HockeyScene(), np.random.default_rng(0), []
    scene.reset()
    for _ in range(800):
        observations, rewards, terminated, truncated, infos = scene.play(random.uniform(-1, 1, 8))
        assert observations.shape == (2, 18)
        assert rewards[0] == 10 * infos[0]["winner"] + infos[0]["reward_closeness_to_puck"]
        if terminated or truncated:
            ends.append((terminated, truncated, infos[0]["winner"]))
            assert scene.time == 0
    assert len(ends) >= 3
    assert all(terminated == (winner != 0) != truncated for terminated, truncated, winner in ends)
