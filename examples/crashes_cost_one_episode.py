"""An environment that crashes its process now and then, and a vector that goes on all the same.

With `on_crash="restart"` another worker takes the place of the lost one. Its slots come back reset
and truncated, with `crashed` in their infos; the others notice nothing. The last line says how many
steps there were until three workers had been lost.
"""

import logging
import os

import gymnasium as gym
import numpy as np

import shoal


class Fragile(gym.Wrapper):
    """Ends its process, as a faulty simulator might, about once in two hundred steps."""

    def step(self, action):
        """Step, or end it all."""
        if self.np_random.random() < 0.005:
            os._exit(1)
        return super().step(action)


logging.getLogger("shoal").setLevel(logging.ERROR)  # each restart would be a line in the log

envs = shoal.make("CartPole-v1", num_envs=4, wrappers=[Fragile], on_crash="restart", workers=2)
envs.reset(seed=0)
crashes = steps = 0
while crashes < 3:
    *_, truncated, infos = envs.step(envs.action_space.sample())
    steps += envs.num_envs
    # Slots of a lost worker come back reset, truncated, and say why.
    crashes += int(np.any(infos.get("crashed", False)))
envs.close()

print(f"{steps} steps, {crashes} crashes, one script")
