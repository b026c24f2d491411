"""Write a native environment in Python: numba compiles it, and threads step thousands of slots.

The last line prints the mean return of a policy that pushes in the direction of the swing.
"""

from math import cos, sin

import numpy as np
from gymnasium import spaces

import shoal
from shoal.kernels import random_uniform

HIGH = np.array([1.0, 1.0, 8.0], np.float32)


@shoal.kernels.numba_kernel(
    observation_space=spaces.Box(-HIGH, HIGH),
    action_space=spaces.Box(-2.0, 2.0, (1,)),
    state=[("angle", np.float64), ("speed", np.float64)],
    parameters={"g": 10.0},
    options={"widest": np.pi},
    infos={"energy": np.float64},
    max_episode_steps=200,
)
class Swing:
    """A pendulum to be swung up and held upright."""

    @staticmethod
    def reset(state, random, parameters, options, observation, info):
        """Begin an episode."""
        state.angle = random_uniform(random, -options.widest, options.widest)
        state.speed = random_uniform(random, -1.0, 1.0)
        observation[0], observation[1] = cos(state.angle), sin(state.angle)
        observation[2] = state.speed
        info.energy[0] = 0.5 * state.speed**2 + parameters.g * cos(state.angle)

    @staticmethod
    def step(state, _random, parameters, action, observation, info):
        """Take a step."""
        torque = min(max(action[0], -2.0), 2.0)
        angle = (state.angle + np.pi) % (2 * np.pi) - np.pi
        cost = angle**2 + 0.1 * state.speed**2 + 0.001 * torque**2
        state.speed += (1.5 * parameters.g * sin(state.angle) + 3.0 * torque) * 0.05
        state.speed = min(max(state.speed, -8.0), 8.0)
        state.angle += state.speed * 0.05
        observation[0], observation[1] = cos(state.angle), sin(state.angle)
        observation[2] = state.speed
        info.energy[0] = 0.5 * state.speed**2 + parameters.g * cos(state.angle)
        return -cost, False, False


with shoal.make(Swing, num_envs=4096, g=9.81, statistics=True) as envs:
    observations, infos = envs.reset(seed=42)
    for _ in range(200):
        push = np.sign(observations[:, 2:]) * 2.0  # in the direction of the swing
        observations, rewards, terminated, truncated, infos = envs.step(push)
    print(f"{envs.num_envs} x 200 steps, mean return {infos['episode']['r'].mean():.0f}")
