"""Stable-Baselines3's algorithms take vectors of Gymnasium's interface as they are."""

from __future__ import annotations

from functools import wraps
from typing import Any

import gymnasium
from stable_baselines3.common.base_class import BaseAlgorithm

from shoal.sb3._bridges import as_vec_env

__all__ = ["accept_vectors"]

_MARK = "_shoal_takes_vectors"


def accept_vectors() -> None:
    """Let ``PPO("MlpPolicy", envs)`` and its like put this frontend on a vector by themselves.

    There is no hook for it, so the method that wraps environments is wrapped, once.
    """
    wrap_env: Any = BaseAlgorithm._wrap_env
    if hasattr(wrap_env, _MARK):
        return

    @wraps(wrap_env)
    def wrap_vectors(env: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(env, gymnasium.vector.VectorEnv):
            env = as_vec_env(env)
        return wrap_env(env, *args, **kwargs)

    setattr(wrap_vectors, _MARK, True)
    BaseAlgorithm._wrap_env = staticmethod(wrap_vectors)  # type: ignore[method-assign]
