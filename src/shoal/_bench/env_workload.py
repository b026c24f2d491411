"""Create a workload from the environment that a user has named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from shoal._bench.atari_games import make_preprocessed_game
from shoal._bench.workload import Environment, Workload
from shoal._envs import has_builtin_kernel
from shoal._envs.atari.registered_ids import is_atari
from shoal._envs.single_env import KernelEnv
from shoal._make import make
from shoal.kernels import Kernel

__all__ = ["env_workload", "has_kernel"]

LoadEnv = Callable[[], Any]
"""Returns an environment's id or spec, a factory function, or a kernel."""


def env_workload(
    name: str, load: LoadEnv, arguments: Mapping[str, Any] | None = None, env_id: str | None = None
) -> Workload:
    """Return the workload for a user's environment.

    Args:
        name: The name shown in results.
        load: Called wherever an environment or a vector is created; must be picklable.
        arguments: Arguments of the environment's constructor.
        env_id: The environment's id, if ``load`` returns one.

    Example:
        >>> from functools import partial
        >>> workload = env_workload("CartPole-v1", partial(str, "CartPole-v1"))
        >>> workload.make().observation_space.shape
        (4,)
        >>> with workload.vector(2, backend="inline") as envs:
        ...     print(envs.plan)
        2 slots, inline: requested
    """
    env_kwargs = dict(arguments or {})
    return Workload(
        name, partial(_make_env, load, env_kwargs), env_id, partial(_make_vector, load, env_kwargs)
    )


def has_kernel(env: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether Shoal has a native kernel for this environment."""
    if isinstance(env, str | EnvSpec):
        return has_builtin_kernel(env, dict(arguments))
    return isinstance(env, Kernel)


def _make_env(load: LoadEnv, arguments: dict[str, Any]) -> Environment:
    source = load()
    if isinstance(source, Kernel):
        return KernelEnv(source.with_arguments(**arguments))
    if is_atari(source) and isinstance(source, str):
        if arguments:
            raise TypeError(
                "arguments are not supported for Atari games, because libraries differ in them"
            )
        return make_preprocessed_game(source)
    if isinstance(source, str | EnvSpec):
        return gymnasium.make(source, **arguments)
    if not callable(source):
        raise TypeError(
            f"expected an environment id, a factory function or a kernel, got {source!r}"
        )
    env = source(**arguments)
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"expected the factory function to return a gymnasium.Env, got {env!r}")
    return env


def _make_vector(load: LoadEnv, arguments: dict[str, Any], num_envs: int, **options: Any) -> Any:
    return make(load(), num_envs, **options, **arguments)
