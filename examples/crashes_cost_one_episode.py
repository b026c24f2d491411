"""Continue stepping while an environment crashes its process.

With `on_crash="restart"` a new worker replaces a crashed one. Its slots are returned reset and
truncated, with `crashed` in their infos; other slots are not affected. The last line prints how
many steps were taken until three workers had crashed.
"""

import logging
import os

import gymnasium as gym
import numpy as np

import shoal


class Fragile(gym.Wrapper):
    """Ends its process about once in 200 steps, as a faulty simulator might."""

    def step(self, action):
        """Step, or end the process."""
        if self.np_random.random() < 0.005:
            os._exit(1)
        return super().step(action)


logging.getLogger("shoal").setLevel(logging.ERROR)  # every restart logs a warning

envs = shoal.make("CartPole-v1", num_envs=4, wrappers=[Fragile], on_crash="restart", workers=2)
envs.reset(seed=0)
crashes = steps = 0
while crashes < 3:
    *_, truncated, infos = envs.step(envs.action_space.sample())
    steps += envs.num_envs
    crashes += int(np.any(infos.get("crashed", False)))
envs.close()

print(f"{steps} steps, {crashes} crashes")
