"""Environment ids of old: what a retired version stands for today."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
from gymnasium.envs.registration import find_highest_version, parse_env_id

from shoal.legacy._env import OldEnv

__all__ = ["current_id", "make"]


def current_id(env_id: str, stacklevel: int = 2) -> str:
    """The id itself where it is registered, else its newest version, with a warning.

    >>> current_id("CartPole-v1")
    'CartPole-v1'
    """
    if ":" in env_id or env_id in gymnasium.registry:
        return env_id
    namespace, name, _ = parse_env_id(env_id)
    newest = find_highest_version(namespace, name)
    if newest is None:
        return env_id  # Gymnasium says best what is wrong with it
    today = f"{namespace}/{name}-v{newest}" if namespace else f"{name}-v{newest}"
    message = f"{env_id} is no longer there: using {today}"
    warnings.warn(message, stacklevel=stacklevel + 1)
    return today


def make(env_id: str, **kwargs: Any) -> OldEnv:
    """Make one environment with the interface of OpenAI Gym.

    >>> env = make("CartPole-v1")
    >>> observation = env.reset()
    >>> observation, reward, done, info = env.step(1)
    >>> done
    False
    """
    return OldEnv(gymnasium.make(current_id(env_id, stacklevel=2), **kwargs))
