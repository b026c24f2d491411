"""Search for wrappers around a vector, of either library."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeVar

from shoal.sb3.base_vec_env import VecEnv, VecEnvWrapper
from shoal.sb3.vec_normalize import VecNormalize

__all__ = [
    "is_vecenv_wrapped",
    "sync_envs_normalization",
    "unwrap_vec_normalize",
    "unwrap_vec_wrapper",
]

Wrapper = TypeVar("Wrapper", bound=VecEnv)


def unwrap_vec_wrapper(env: VecEnv, vec_wrapper_class: type[Wrapper]) -> Wrapper | None:
    """Return the outermost wrapper of this class around a vector, or None."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, vec_wrapper_class):
            return env
        env = env.venv
    return None


def unwrap_vec_normalize(env: VecEnv) -> VecNormalize | None:
    """Return the outermost ``VecNormalize`` around a vector, or None."""
    return unwrap_vec_wrapper(env, VecNormalize)


def is_vecenv_wrapped(env: VecEnv, vec_wrapper_class: type[VecEnv]) -> bool:
    """Whether a vector has a wrapper of this class."""
    return unwrap_vec_wrapper(env, vec_wrapper_class) is not None


def sync_envs_normalization(env: VecEnv, eval_env: VecEnv) -> None:
    """Copy the statistics of ``VecNormalize`` from ``env`` to ``eval_env``.

    Both vectors must be wrapped the same way.
    """
    while isinstance(env, VecEnvWrapper):
        eval_wrapper = _check_same_wrapper(env, eval_env, VecEnvWrapper)
        if isinstance(env, VecNormalize):
            eval_normalize = _check_same_wrapper(env, eval_env, VecNormalize)
            if hasattr(env, "obs_rms"):
                eval_normalize.obs_rms = deepcopy(env.obs_rms)
            eval_normalize.ret_rms = deepcopy(env.ret_rms)
        env, eval_env = env.venv, eval_wrapper.venv


def _check_same_wrapper(env: VecEnv, eval_env: VecEnv, vector_class: type[Any]) -> Any:
    if not isinstance(eval_env, vector_class):
        raise AssertionError(
            "Error while synchronizing normalization stats: expected the eval env to be a "
            f"{vector_class.__name__} but got {eval_env} instead. The two must be wrapped the same "
            f"way; the training env is {env}."
        )
    return eval_env
