"""The interface of OpenAI Gym, for existing code.

    >>> import shoal.legacy as gym
    >>> envs = gym.vector.make("CartPole-v1", num_envs=3)
    >>> observations = envs.reset()
    >>> observations, rewards, dones, infos = envs.step([1, 0, 1])
    >>> infos
    ({}, {}, {})
    >>> envs.close()

``reset`` returns only observations, ``step`` returns four values, and infos are a tuple of dicts.
The environments may have the interface of OpenAI Gym or of Gymnasium.
"""

from gymnasium import Env, Space, error, register

from shoal.legacy import spaces, vector
from shoal.legacy._env import OldEnv
from shoal.legacy._ids import make

__all__ = ["Env", "OldEnv", "Space", "error", "make", "register", "spaces", "vector"]
