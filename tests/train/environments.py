"""Environments to train on; workers import them, and no torch with them."""

import os

import gymnasium
import numpy as np
from gymnasium import spaces

EPISODE = 7


class Counting(gymnasium.Env):
    """Observes how many steps its episode has, and which episode it is."""

    metadata = {"render_modes": []}
    observation_space = spaces.Box(0, 1e6, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, ends="terminated", length=EPISODE, first=0):
        self.ends, self.length = ends, length
        self.episode = first

    def _seen(self):
        return np.array([self.steps, self.episode], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.episode += 1
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        over = self.steps >= self.length
        terminated = over and self.ends in ("terminated", "both")
        truncated = over and self.ends in ("truncated", "both")
        return self._seen(), float(self.steps), terminated, truncated, {}


class Nested(Counting):
    """The same, in parts; actions are numbers."""

    observation_space = spaces.Dict(
        inner=spaces.Dict(steps=spaces.Box(0, 1e6, (1,), np.float64), kind=spaces.Discrete(3)),
        pair=spaces.Tuple((spaces.MultiBinary(2), spaces.MultiDiscrete([2, 3]))),
    )
    action_space = spaces.Box(-2.0, np.array([1.0, 3.0], np.float32), (2,), np.float32)

    def _seen(self):
        return {
            "inner": {"steps": np.array([self.steps], np.float64), "kind": self.steps % 3},
            "pair": (np.array([1, 0], np.int8), np.array([self.steps % 2, 2])),
        }

    def step(self, action):
        assert self.action_space.contains(action)
        return super().step(action)


class Crashing(gymnasium.Env):
    """Tells which environment it is, and the step; it ends its process in the fifth one."""

    observation_space = spaces.Box(0, 1e6, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.seen(), {}

    def step(self, action):
        self.time += 1
        if self.time == 5 and action:
            os._exit(1)
        return self.seen(), 1.0, False, False, {}

    def seen(self):
        return np.array([os.getpid(), self.time], np.float32)


class Heavy(gymnasium.Wrapper):
    """A pole that tells how heavy it is."""

    def __init__(self, env, weight):
        super().__init__(env)
        env.unwrapped.masspole = weight

    def reset(self, **options):
        seen, infos = self.env.reset(**options)
        return np.append(seen[:3], self.unwrapped.masspole).astype(np.float32), infos

    def step(self, action):
        seen, *rest = self.env.step(action)
        return np.append(seen[:3], self.unwrapped.masspole).astype(np.float32), *rest


def heavy(weight, render_mode=None):
    return Heavy(gymnasium.make("CartPole-v1", render_mode=render_mode), weight)
