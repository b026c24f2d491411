"""Environments of the tests.

In a separate module, so that a worker process that unpickles one does not import Stable-Baselines3.
"""

import os
from copy import deepcopy

import gymnasium
import numpy as np
from gymnasium import spaces


class Box(gymnasium.Env):
    """Returns its number and action as the observation, and reset arguments as the info."""

    observation_space = spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space = spaces.Discrete(5)
    metadata = {"render_modes": ["rgb_array", "human", "ansi"], "render_fps": 7}

    def __init__(self, number=0, render_mode=None):
        self.number = number
        self.render_mode = render_mode
        self.resets = []
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets.append((seed, options))
        return np.array([self.number, -1.0]), {"seed": seed, "options": options}

    def step(self, action):
        self.steps += 1
        done = action == 4
        return np.array([self.number, action]), float(action), bool(done), False, {}

    def render(self):
        return np.full((2, 3, 3), self.number, np.uint8)

    def add(self, one, *, two=0):
        return self.number + one + two


class Taker(Box):
    """Keeps the last action."""

    def __init__(self, action_space):
        super().__init__()
        self.action_space = action_space

    def step(self, action):
        self.got = action
        return np.zeros(2), 0.0, False, False, {}


class Fragile(Box):
    """Kills its process instead of ending an episode."""

    def step(self, action):
        if action == 4:
            os._exit(1)
        return super().step(action)


class NoOptions(gymnasium.Env):
    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None):
        return 0, {}

    def step(self, action):
        return int(action), 0.0, action == 2, False, {}


class Lamp(gymnasium.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.light = "off"


class Picture(gymnasium.Env):
    """Random images, with short episodes and an info now and then."""

    action_space = spaces.Discrete(3)

    def __init__(self, shape=(40, 36, 3), keyed=False):
        image = spaces.Box(0, 255, shape, np.uint8)
        self.observation_space = image
        if keyed:
            parts = {"image": image, "speed": spaces.Box(-9, 9, (2,)), "gear": spaces.Discrete(4)}
            self.observation_space = spaces.Dict(parts)
        # A copy, since Stable-Baselines3's VecNormalize modifies the Dict space of the environment.
        self._possible = deepcopy(self.observation_space)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self._possible.seed(seed)
        return self._possible.sample(), {"options": str(options)}

    def step(self, action):
        ends = self.np_random.random(2) < 0.1
        info = {"action": int(action)} if action else {}
        observation = self._possible.sample()
        return observation, float(action) - 0.3, bool(ends[0]), bool(ends[1]), info


class Masked(gymnasium.Env):
    """An environment with a mask of allowed actions."""

    observation_space = spaces.Box(-1, 1, (3,))
    action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action):
        assert action in (1, 3)
        ends = self.np_random.random() < 0.1
        return self.np_random.random(3, np.float32), float(action), bool(ends), False, {}

    def allowed(self):
        return np.array([False, True, False, True])


class Flicker(gymnasium.Env):
    observation_space = spaces.Box(0, 255, (40, 40, 1), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._picture(), {}

    def step(self, action):
        return self._picture(), float(action), self.np_random.random() < 0.1, False, {}

    def _picture(self):
        return self.np_random.integers(0, 256, (40, 40, 1), np.uint8)
