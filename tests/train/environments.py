"""Training environments. Workers import this module, so it must not import torch."""

import os

import gymnasium
import numpy as np
from gymnasium import spaces

EPISODE = 7


class Counting(gymnasium.Env):
    """Environment whose observation is the step in the episode and the number of the episode."""

    metadata = {"render_modes": []}
    observation_space = spaces.Box(0, 1e6, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, ends="terminated", length=EPISODE, first=0):
        self.ends, self.length = ends, length
        self.episode = first

    def _observation(self):
        return np.array([self.steps, self.episode], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.episode += 1
        return self._observation(), {}

    def step(self, action):
        self.steps += 1
        over = self.steps >= self.length
        terminated = over and self.ends in ("terminated", "both")
        truncated = over and self.ends in ("truncated", "both")
        return self._observation(), float(self.steps), terminated, truncated, {}


class Nested(Counting):
    """Counting with nested observations and continuous actions."""

    observation_space = spaces.Dict(
        inner=spaces.Dict(steps=spaces.Box(0, 1e6, (1,), np.float64), kind=spaces.Discrete(3)),
        pair=spaces.Tuple((spaces.MultiBinary(2), spaces.MultiDiscrete([2, 3]))),
    )
    action_space = spaces.Box(-2.0, np.array([1.0, 3.0], np.float32), (2,), np.float32)

    def _observation(self):
        return {
            "inner": {"steps": np.array([self.steps], np.float64), "kind": self.steps % 3},
            "pair": (np.array([1, 0], np.int8), np.array([self.steps % 2, 2])),
        }

    def step(self, action):
        assert self.action_space.contains(action)
        return super().step(action)


class Crashing(gymnasium.Env):
    """Environment that observes its process id and step, and exits its process in step 5."""

    observation_space = spaces.Box(0, 1e6, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observation(), {}

    def step(self, action):
        self.time += 1
        if self.time == 5 and action:
            os._exit(1)
        return self.observation(), 1.0, False, False, {}

    def observation(self):
        return np.array([os.getpid(), self.time], np.float32)


class HeavyCartPole(gymnasium.Wrapper):
    """CartPole with a given mass of the pole, which is part of the observation."""

    def __init__(self, env, weight):
        super().__init__(env)
        env.unwrapped.masspole = weight

    def reset(self, **options):
        observation, infos = self.env.reset(**options)
        return np.append(observation[:3], self.unwrapped.masspole).astype(np.float32), infos

    def step(self, action):
        observation, *rest = self.env.step(action)
        return np.append(observation[:3], self.unwrapped.masspole).astype(np.float32), *rest


def heavy_cartpole(weight, render_mode=None):
    return HeavyCartPole(gymnasium.make("CartPole-v1", render_mode=render_mode), weight)
