"""Long runs with many random spaces and millions of steps."""

from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from hypothesis import HealthCheck, settings

import shoal
from shoal.testing import ProbeEnv, assert_identical
from tests.random_environments import RandomEnv
from tests.vector.test_against_gymnasium import RANDOM_CASES, play
from tests.vector.test_lifetime import resident_kilobytes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@RANDOM_CASES
def test_many_random_spaces(observation_space, action_space, mode, num_envs, seed, copy):
    factories = [partial(RandomEnv, observation_space, action_space)] * num_envs
    for mine, reference in play(factories, mode, 40, seed, copy):
        assert_identical(mine.received, reference.received)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_memory_is_constant_over_a_million_steps(mode):
    factories = [partial(ProbeEnv, slot) for slot in range(32)]
    envs = shoal.make(factories, autoreset_mode=mode, statistics=True)
    envs.reset(seed=0)
    actions = [envs.action_space.sample() for _ in range(16)]
    for step in range(32_000):
        if step == 2000:
            memory = resident_kilobytes()
        envs.step(actions[step % 16])
    assert resident_kilobytes() - memory < 4096
    envs.close()


@pytest.mark.parametrize("copy", [True, False])
def test_large_observations_are_released(copy):
    class Camera(RandomEnv):
        def step(self, action):
            return np.zeros((210, 160, 3), np.uint8), 0.0, False, False, {}

    image = spaces.Box(0, 255, (210, 160, 3), np.uint8)
    envs = shoal.make(partial(Camera, image, spaces.Discrete(2)), num_envs=16, copy=copy)
    envs.reset(seed=0)
    for step in range(3000):
        if step == 100:
            memory = resident_kilobytes()
        envs.step(np.zeros(16, np.int64))
    assert resident_kilobytes() - memory < 16_384
    envs.close()
