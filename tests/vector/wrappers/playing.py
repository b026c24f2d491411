"""Stepping two vectors through the same actions, and comparing everything that comes back."""

from functools import partial

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from shoal.testing import assert_identical
from tests.strategies import RandomEnv

GYMNASIUM_IS_NEW = tuple(map(int, gymnasium.__version__.split(".")[:2])) >= (1, 4)
"""Whether Gymnasium's wrappers behave as those that Shoal's are modelled on."""

IMAGE = spaces.Box(0, 255, (7, 5, 3), np.uint8)
PARTS = spaces.Dict(
    b=spaces.Box(-1, 1, (2, 3), np.float32),
    a=spaces.Discrete(5, start=2),
    c=spaces.Tuple((spaces.MultiBinary(3), spaces.MultiDiscrete([3, 4]))),
)
PAIR = spaces.Tuple((spaces.Box(-1, 1, (2,), np.float64), spaces.Discrete(4)))


def observing(space, action_space=None):
    """A function that makes an environment of short episodes with these observations."""
    return partial(RandomEnv, space, action_space or spaces.Discrete(3), mean_length=5)


def made(env_id, **kwargs):
    return partial(gymnasium.make, env_id, max_episode_steps=12, **kwargs)


class WithoutInfos(gymnasium.Wrapper):
    """Drops infos, of which Gymnasium's vectors lose some where their kinds differ."""

    def reset(self, **kwargs):
        return self.env.reset(**kwargs)[0], {}

    def step(self, action):
        return *self.env.step(action)[:4], {}


def frozen_lake():
    return WithoutInfos(made("FrozenLake-v1")())


def play(ours, theirs, steps=60, seed=3, masks=0.1, seen=lambda result: result):
    """Compare two vectors over some steps; ``seen`` drops what may differ."""
    mode = theirs.metadata["autoreset_mode"]
    assert_same_spaces(ours, theirs)
    assert_identical(seen(ours.reset(seed=seed)), seen(theirs.reset(seed=seed)))
    theirs.action_space.seed(seed)
    rng = np.random.default_rng(seed)
    for step in range(steps):
        action = theirs.action_space.sample()
        got, expected = ours.step(action), theirs.step(action)
        assert_identical(seen(got), seen(expected), f"step {step}")
        mask = expected[2] | expected[3]
        if mode is not AutoresetMode.DISABLED:
            mask = rng.random(ours.num_envs) < (0.5 if rng.random() < masks else 0)
        if mask.any():
            got = ours.reset(seed=seed + step, options={"reset_mask": mask.copy()})
            expected = theirs.reset(seed=seed + step, options={"reset_mask": mask.copy()})
            assert_identical(seen(got), seen(expected), f"reset after step {step}")
    ours.close()
    theirs.close()


def assert_same_spaces(ours, theirs):
    for name in ("observation_space", "action_space"):
        assert getattr(ours, name) == getattr(theirs, name)
        assert getattr(ours, f"single_{name}") == getattr(theirs, f"single_{name}")
