"""The interface of OpenAI Gym, for code that was written for it.

    >>> import shoal.legacy as gym
    >>> envs = gym.vector.make("CartPole-v1", num_envs=3)
    >>> observations = envs.reset()
    >>> observations, rewards, dones, infos = envs.step([1, 0, 1])
    >>> infos
    ({}, {}, {})
    >>> envs.close()

``reset`` returns observations alone, ``step`` returns four values, infos are a tuple of dicts, and
environments may themselves be of that older form or of today's.
"""

from gymnasium import Env, Space, error, register

from shoal.legacy import spaces, vector
from shoal.legacy._env import OldEnv
from shoal.legacy._ids import make

__all__ = ["Env", "OldEnv", "Space", "error", "make", "register", "spaces", "vector"]
