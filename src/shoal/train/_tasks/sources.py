"""Environments that can be trained on, and their conversion to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any, TypeGuard

import gymnasium
from gymnasium.envs.registration import EnvSpec

import shoal
from shoal.kernels import Kernel
from shoal.pools._environments import EnvFactory
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["EnvSource", "default_num_envs", "env_name", "open_vector", "registered_id"]

EnvSource = str | EnvSpec | Kernel | EnvFactory | Sequence[EnvFactory]
"""An argument of :func:`shoal.make`, or the URL of a server for :func:`shoal.connect`."""


def open_vector(env: EnvSource, num_envs: int, **options: Any) -> VectorEnv:
    """Create a vector of environments.

    Args:
        env: The environment. The functions of a list are assigned to the slots in turn.
        num_envs: Number of slots.
        options: Keyword arguments for :func:`shoal.make` or :func:`shoal.connect`.

    Example:
        >>> from functools import partial
        >>> import gymnasium
        >>> env_fns = [partial(gymnasium.make, "Pendulum-v1", g=g) for g in (9.81, 1.62)]
        >>> with open_vector(env_fns, 3, backend="inline") as envs:
        ...     envs.get_attr("g")
        (9.81, 1.62, 9.81)
    """
    if isinstance(env, str) and "://" in env:
        return shoal.connect(env, num_envs, **options)
    if _is_list(env):
        return shoal.make(list(islice(cycle(env), num_envs)), **options)
    return shoal.make(env, num_envs, **options)


def registered_id(env: EnvSource) -> EnvSource:
    """Replace an unmodified registered spec by its id; return other environments unchanged.

    >>> registered_id(gymnasium.spec("CartPole-v1"))
    'CartPole-v1'
    """
    if isinstance(env, EnvSpec) and env == gymnasium.registry.get(env.id):
        return env.id
    return env


def env_name(env: EnvSource) -> str:
    """Return a readable name of an environment.

    >>> env_name("CartPole-v1"), env_name([int, float])
    ('CartPole-v1', '2 environments')
    """
    if isinstance(env, str):
        return env
    if isinstance(env, EnvSpec):
        return env.id
    if isinstance(env, Kernel):
        return env.name
    if _is_list(env):
        return f"{len(env)} environments"
    return getattr(env, "__name__", type(env).__name__)


def default_num_envs(env: EnvSource) -> int:
    """Return the number of slots if the user does not specify it: the length of a list, or 1.

    >>> default_num_envs("CartPole-v1"), default_num_envs([int, float])
    (1, 2)
    """
    return len(env) if _is_list(env) else 1


def _is_list(env: EnvSource) -> TypeGuard[Sequence[EnvFactory]]:
    return isinstance(env, Sequence) and not isinstance(env, str)
