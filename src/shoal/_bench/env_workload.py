"""The environment that a user has named, as something that can be measured."""

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
"""Gives an environment's id or spec, a function that makes an environment, or a kernel."""


def env_workload(
    name: str, load: LoadEnv, arguments: Mapping[str, Any] | None = None, env_id: str | None = None
) -> Workload:
    """Make a workload of what a user has.

    Args:
        name: What it is called.
        load: Called wherever an environment or a vector is made; travels by pickle.
        arguments: Of the environment's constructor.
        env_id: Its id, where ``load`` gives nothing else.

    Example:
        >>> from functools import partial
        >>> workload = env_workload("CartPole-v1", partial(str, "CartPole-v1"))
        >>> workload.make().observation_space.shape
        (4,)
        >>> with workload.vector(2, backend="inline") as envs:
        ...     print(envs.plan)
        2 slots, inline: asked for
    """
    given = dict(arguments or {})
    return Workload(name, partial(_single, load, given), env_id, partial(_vector, load, given))


def has_kernel(what: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether Shoal has native code for it."""
    if isinstance(what, str | EnvSpec):
        return has_builtin_kernel(what, dict(arguments))
    return isinstance(what, Kernel)


def _single(load: LoadEnv, arguments: dict[str, Any]) -> Environment:
    what = load()
    if isinstance(what, Kernel):
        return KernelEnv(what.with_arguments(**arguments))
    if is_atari(what) and isinstance(what, str):
        if arguments:
            raise TypeError("Atari games have other settings in each library: give none")
        return make_preprocessed_game(what)
    if isinstance(what, str | EnvSpec):
        return gymnasium.make(what, **arguments)
    if not callable(what):
        raise TypeError(
            "expected an environment's id, a function that makes an environment, or a kernel, "
            f"got {what!r}"
        )
    env = what(**arguments)
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"expected a gymnasium.Env to be made, got {env!r}")
    return env


def _vector(load: LoadEnv, arguments: dict[str, Any], num_envs: int, **options: Any) -> Any:
    return make(load(), num_envs, **options, **arguments)
