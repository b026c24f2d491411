"""A crash with restart ends the episode: transitions never span two environments."""

import gymnasium
import numpy as np
import pytest

from shoal.train._tasks import VectorTask
from tests.train.environments import Crashing


@pytest.mark.timeout(60)
def test_final_observation_is_from_the_crashed_environment():
    gymnasium.register("TrainCrashing-v0", Crashing)
    arguments = {"backend": "process", "workers": 2, "on_crash": "restart"}
    task = VectorTask("TrainCrashing-v0", 2, arguments=arguments)
    try:
        task.reset()
        for step in range(1, 8):
            before = task.observations.copy()
            outcome = task.step(np.array([1, 0]))
            ended = np.flatnonzero(outcome.truncated)
            assert ended.tolist() == ([0] if step == 5 else [])
            if step == 5:
                np.testing.assert_array_equal(outcome.next_observations[0], before[0])
                assert task.finished_episodes(ended)[0].length == 5
            else:
                np.testing.assert_array_equal(outcome.next_observations[:, 1], before[:, 1] + 1)
            task.reset(ended)
        assert task.observations[:, 1].tolist() == [2, 7]
    finally:
        task.close()
