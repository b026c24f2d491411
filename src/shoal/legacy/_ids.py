"""Replacement of retired environment versions by current ones."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
from gymnasium.envs.registration import find_highest_version, parse_env_id

from shoal.legacy._env import OldEnv

__all__ = ["current_id", "make"]


def current_id(env_id: str, stacklevel: int = 2) -> str:
    """Return the id if it is registered; otherwise warn and return its newest version.

    >>> current_id("CartPole-v1")
    'CartPole-v1'
    """
    if ":" in env_id or env_id in gymnasium.registry:
        return env_id
    namespace, name, _ = parse_env_id(env_id)
    newest = find_highest_version(namespace, name)
    if newest is None:
        return env_id  # gymnasium.make raises a detailed error
    replacement = f"{namespace}/{name}-v{newest}" if namespace else f"{name}-v{newest}"
    message = f"{env_id} is no longer available: using {replacement}"
    warnings.warn(message, stacklevel=stacklevel + 1)
    return replacement


def make(env_id: str, **kwargs: Any) -> OldEnv:
    """Make one environment with the interface of OpenAI Gym.

    >>> env = make("CartPole-v1")
    >>> observation = env.reset()
    >>> observation, reward, done, info = env.step(1)
    >>> done
    False
    """
    return OldEnv(gymnasium.make(current_id(env_id, stacklevel=2), **kwargs))
