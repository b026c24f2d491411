"""Environments for the tests of wrappers, and the comparison of two wrapped vectors."""

from functools import partial

import gymnasium
import numpy as np
from gymnasium import spaces

from tests.random_environments import RandomEnv
from tests.rollouts import assert_rollouts_are_equal

GYMNASIUM_IS_NEW = tuple(map(int, gymnasium.__version__.split(".")[:2])) >= (1, 4)
"""Whether Gymnasium is recent enough that Shoal's wrappers should give equal results."""

IMAGE = spaces.Box(0, 255, (7, 5, 3), np.uint8)
PARTS = spaces.Dict(
    b=spaces.Box(-1, 1, (2, 3), np.float32),
    a=spaces.Discrete(5, start=2),
    c=spaces.Tuple((spaces.MultiBinary(3), spaces.MultiDiscrete([3, 4]))),
)
PAIR = spaces.Tuple((spaces.Box(-1, 1, (2,), np.float64), spaces.Discrete(4)))


def random_env(space, action_space=None):
    """Return a function that makes an environment of this space with short episodes."""
    return partial(RandomEnv, space, action_space or spaces.Discrete(3), mean_length=5)


def factory_of(env_id, **kwargs):
    return partial(gymnasium.make, env_id, max_episode_steps=12, **kwargs)


class WithoutInfos(gymnasium.Wrapper):
    """Drops infos, since Gymnasium's vectors lose values of different types."""

    def reset(self, **kwargs):
        return self.env.reset(**kwargs)[0], {}

    def step(self, action):
        return *self.env.step(action)[:4], {}


def frozen_lake():
    return WithoutInfos(factory_of("FrozenLake-v1")())


def play(ours, theirs, steps=60, seed=3, **options):
    """Compare two vectors over some steps, and close them."""
    assert_rollouts_are_equal(ours, theirs, steps, seed, **options)
    ours.close()
    theirs.close()
