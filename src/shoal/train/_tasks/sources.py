"""What can be trained on, and how it becomes a vector."""

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

__all__ = ["EnvSource", "by_its_id", "name_of", "open_vector", "slots_of"]

EnvSource = str | EnvSpec | Kernel | EnvFactory | Sequence[EnvFactory]
"""What :func:`shoal.make` takes, or where a server is, as :func:`shoal.connect` takes it."""


def open_vector(env: EnvSource, num_envs: int, **options: Any) -> VectorEnv:
    """So many slots of an environment.

    Args:
        env: Of a list of functions each slot takes the next one, and after the last the first.
        num_envs: How many.
        options: Given to :func:`shoal.make` or :func:`shoal.connect`.

    Example:
        >>> from functools import partial
        >>> import gymnasium
        >>> worlds = [partial(gymnasium.make, "Pendulum-v1", g=g) for g in (9.81, 1.62)]
        >>> with open_vector(worlds, 3, backend="inline") as envs:
        ...     envs.get_attr("g")
        (9.81, 1.62, 9.81)
    """
    if isinstance(env, str) and "://" in env:
        return shoal.connect(env, num_envs, **options)
    if _is_list(env):
        return shoal.make(list(islice(cycle(env), num_envs)), **options)
    return shoal.make(env, num_envs, **options)


def by_its_id(env: EnvSource) -> EnvSource:
    """A spec that is registered as it is goes by its id, which a run can remember.

    >>> by_its_id(gymnasium.spec("CartPole-v1"))
    'CartPole-v1'
    """
    if isinstance(env, EnvSpec) and env == gymnasium.registry.get(env.id):
        return env.id
    return env


def name_of(env: EnvSource) -> str:
    """What it is called.

    >>> name_of("CartPole-v1"), name_of([int, float])
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


def slots_of(env: EnvSource) -> int:
    """How many slots it is by itself.

    >>> slots_of("CartPole-v1"), slots_of([int, float])
    (1, 2)
    """
    return len(env) if _is_list(env) else 1


def _is_list(env: EnvSource) -> TypeGuard[Sequence[EnvFactory]]:
    return isinstance(env, Sequence) and not isinstance(env, str)
