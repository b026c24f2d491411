"""Functions that make vectors from an environment id."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import gymnasium
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.monitor import Monitor

from shoal.legacy._openai_gym import gymnasium_env
from shoal.sb3.base_vec_env import VecEnv
from shoal.sb3.dummy_vec_env import DummyVecEnv

__all__ = ["is_wrapped", "make_atari_env", "make_vec_env", "unwrap_wrapper"]

Env = gymnasium.Env[Any, Any]
Wrapper = TypeVar("Wrapper", bound=gymnasium.Wrapper[Any, Any, Any, Any])


def unwrap_wrapper(env: Env, wrapper_class: type[Wrapper]) -> Wrapper | None:
    """Return the outermost wrapper of this class around an environment, or None."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, wrapper_class):
            return env
        env = env.env
    return None


def is_wrapped(env: Env, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]]) -> bool:
    """Whether an environment has a wrapper of this class."""
    return unwrap_wrapper(env, wrapper_class) is not None


def make_vec_env(
    env_id: str | Callable[..., Env],
    n_envs: int = 1,
    seed: int | None = None,
    start_index: int = 0,
    monitor_dir: str | None = None,
    wrapper_class: Callable[..., Env] | None = None,
    env_kwargs: dict[str, Any] | None = None,
    vec_env_cls: Callable[..., VecEnv] | None = None,
    vec_env_kwargs: dict[str, Any] | None = None,
    monitor_kwargs: dict[str, Any] | None = None,
    wrapper_kwargs: dict[str, Any] | None = None,
) -> VecEnv:
    """Make a vector of environments, each in a ``Monitor``.

    Args:
        env_id: The environment id, or a class or function that makes an environment. An id is made
            with ``render_mode="rgb_array"`` if the environment supports it.
        n_envs: Number of environments.
        seed: Seed of the first reset and of the action spaces; counts up over the environments.
        start_index: Number of the first environment, which is added to the seed of its action
            space and names its monitor file.
        monitor_dir: Folder of the monitors' files; None to write no files.
        wrapper_class: A wrapper class or function that is applied around the monitor.
        env_kwargs: Arguments of the environment's constructor.
        vec_env_cls: The class of the vector; :class:`DummyVecEnv` by default.
        vec_env_kwargs: Arguments of the vector's constructor.
        monitor_kwargs: Arguments of each monitor.
        wrapper_kwargs: Arguments of each wrapper.

    Example:
        >>> vec_env = make_vec_env("CartPole-v1", n_envs=4, seed=0)
        >>> vec_env.reset().shape
        (4, 4)
        >>> vec_env.close()
    """
    make_env = partial(
        _make_env,
        env_id,
        seed,
        monitor_dir,
        wrapper_class,
        env_kwargs or {},
        monitor_kwargs or {},
        wrapper_kwargs or {},
    )
    ranks = range(start_index, start_index + n_envs)
    vec_env_class = DummyVecEnv if vec_env_cls is None else vec_env_cls
    vec_env = vec_env_class([partial(make_env, rank) for rank in ranks], **(vec_env_kwargs or {}))
    vec_env.seed(seed)
    return vec_env


def make_atari_env(
    env_id: str | Callable[..., Env],
    n_envs: int = 1,
    seed: int | None = None,
    start_index: int = 0,
    monitor_dir: str | None = None,
    wrapper_kwargs: dict[str, Any] | None = None,
    env_kwargs: dict[str, Any] | None = None,
    vec_env_cls: Callable[..., VecEnv] | None = None,
    vec_env_kwargs: dict[str, Any] | None = None,
    monitor_kwargs: dict[str, Any] | None = None,
) -> VecEnv:
    """Make a vector of Atari games with the preprocessing of Stable-Baselines3's ``AtariWrapper``.

    The arguments are those of :func:`make_vec_env`; ``wrapper_kwargs`` are those of
    ``AtariWrapper``. With its default ``terminal_on_life_loss=True``, the loss of a life ends an
    episode, and the following reset continues the same game.
    """
    return make_vec_env(
        env_id,
        n_envs=n_envs,
        seed=seed,
        start_index=start_index,
        monitor_dir=monitor_dir,
        wrapper_class=AtariWrapper,
        env_kwargs=env_kwargs,
        vec_env_cls=vec_env_cls,
        vec_env_kwargs=vec_env_kwargs,
        monitor_kwargs=monitor_kwargs,
        wrapper_kwargs=wrapper_kwargs,
    )


def _make_env(
    env_id: str | Callable[..., Env],
    seed: int | None,
    monitor_dir: str | None,
    wrapper_class: Callable[..., Env] | None,
    env_kwargs: dict[str, Any],
    monitor_kwargs: dict[str, Any],
    wrapper_kwargs: dict[str, Any],
    rank: int,
) -> Env:
    """Make one environment; called in the process that steps it."""
    env = (
        _make_by_id(env_id, env_kwargs)
        if isinstance(env_id, str)
        else gymnasium_env(partial(env_id, **env_kwargs))
    )
    try:
        if seed is not None:
            env.action_space.seed(seed + rank)
        file = None
        if monitor_dir is not None:
            folder = Path(monitor_dir)
            folder.mkdir(parents=True, exist_ok=True)
            file = str(folder / str(rank))
        wrapped: Env = Monitor(env, filename=file, **monitor_kwargs)
        return wrapped if wrapper_class is None else wrapper_class(wrapped, **wrapper_kwargs)
    except BaseException:
        env.close()
        raise


def _make_by_id(env_id: str, kwargs: dict[str, Any]) -> Env:
    try:
        return gymnasium.make(env_id, **{"render_mode": "rgb_array", **kwargs})
    except TypeError:  # the environment does not accept a render mode
        return gymnasium.make(env_id, **kwargs)
