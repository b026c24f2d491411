"""Environments for the tests. Workers import this module, so it must not import Tianshou."""

import os

import gymnasium
import numpy as np
from gymnasium import spaces


class Counter(gymnasium.Env):
    """Environment that counts steps. Action 4 terminates, action 5 raises, action 6 exits.

    If there is a gate, a step waits until it is set.
    """

    observation_space = spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space = spaces.Discrete(7)
    metadata = {"render_modes": ["ansi"], "note": "kept"}
    render_mode = "ansi"

    def __init__(self, number=0, gate=None):
        self.number = number
        self.gate = gate
        self.weight = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.array([self.number, 0.0]), {"seed": seed, "options": str(options)}

    def step(self, action):
        if self.gate is not None:
            assert self.gate.wait(60)
        self.steps += 1
        if action == 5:
            raise ArithmeticError("requested failure")
        if action == 6:
            os._exit(1)
        return np.array([self.number, self.steps]), 1.0, action == 4, False, {}

    def render(self):
        return f"{self.number}@{self.steps}"


class Pairs(Counter):
    observation_space = spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2)))
