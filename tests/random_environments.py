"""Environments with random spaces, in a module that workers can import without Hypothesis."""

from copy import deepcopy

import gymnasium
import numpy as np
from gymnasium import spaces


class WordSpace(gymnasium.Space):
    """A custom space type that neither Gymnasium nor Shoal supports explicitly."""

    def sample(self, mask=None, probability=None):
        return f"word-{self.np_random.integers(1000)}"

    def contains(self, x):
        return isinstance(x, str) and x.startswith("word-")

    def __eq__(self, other):
        return isinstance(other, WordSpace)


class NamedBox(spaces.Box):
    """A subclass of a supported space type."""


class RandomEnv(gymnasium.Env):
    """Returns samples of its observation space, random episode ends, and infos of many types.

    All results are determined by the seed of the last seeded reset and the number of steps since.
    """

    metadata = {"render_modes": [], "note": "kept"}

    def __init__(self, observation_space, action_space, mean_length=6, with_infos=True):
        self.observation_space = deepcopy(observation_space)
        self.action_space = deepcopy(action_space)
        self.received = []
        self._mean_length = mean_length
        self._with_infos = with_infos

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample(), self._info()

    def step(self, action):
        self.received.append(deepcopy(action))
        ends = self.np_random.random(2) < 1 / self._mean_length
        reward = self.np_random.choice([0.5, 1, np.float32(0.1)])
        return self.observation_space.sample(), reward, ends[0], bool(ends[1]), self._info()

    def _info(self):
        if not self._with_infos or self.np_random.random() < 0.4:
            return {}
        rng = self.np_random
        possible = {
            "float": float(rng.random()),
            "integer": int(rng.integers(100)),
            "bool": bool(rng.random() < 0.5),
            "float32": np.float32(rng.random()),
            "uint8": np.uint8(rng.integers(200)),
            "numpy_bool": np.bool_(rng.random() < 0.5),
            "array": rng.random((2, 3)),
            "scalar_array": np.array(rng.integers(9)),
            "objects": np.array([None, int(rng.integers(9))], object),
            "text": f"text {rng.integers(9)}",
            "nothing": None,
            "list": [int(rng.integers(9))],
            "nested": {"deep": {"x": float(rng.random())}, "y": int(rng.integers(9))},
            "empty": {},
        }
        return {key: value for key, value in possible.items() if rng.random() < 0.4}
