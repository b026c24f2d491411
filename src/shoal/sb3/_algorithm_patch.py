"""An opt-in patch: Stable-Baselines3's algorithms accept vectors of Gymnasium's interface."""

from __future__ import annotations

from functools import wraps
from typing import Any

import gymnasium
from stable_baselines3.common.base_class import BaseAlgorithm

from shoal.sb3._bridges import as_vec_env

__all__ = ["patch_algorithms", "unpatch_algorithms"]

_ORIGINAL = "_shoal_original"


def patch_algorithms() -> None:
    """Make Stable-Baselines3's algorithms accept vectors of Gymnasium's interface.

    ``PPO("MlpPolicy", envs)`` and the other algorithms then call :func:`as_vec_env` on such a
    vector themselves. Stable-Baselines3 has no hook for this, so ``BaseAlgorithm._wrap_env`` is
    replaced for the whole process. A second call does nothing; :func:`unpatch_algorithms` restores
    the original method. Code that calls :func:`as_vec_env` itself does not need the patch.

    Example:
        >>> import shoal
        >>> from stable_baselines3 import PPO
        >>> patch_algorithms()
        >>> model = PPO("MlpPolicy", shoal.make("CartPole-v1", num_envs=2), device="cpu")
        >>> model.n_envs
        2
        >>> unpatch_algorithms()
    """
    wrap_env: Any = BaseAlgorithm._wrap_env
    if hasattr(wrap_env, _ORIGINAL):
        return

    @wraps(wrap_env)
    def wrap_vector_env(env: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(env, gymnasium.vector.VectorEnv):
            env = as_vec_env(env)
        return wrap_env(env, *args, **kwargs)

    setattr(wrap_vector_env, _ORIGINAL, wrap_env)
    BaseAlgorithm._wrap_env = staticmethod(wrap_vector_env)  # type: ignore[method-assign]


def unpatch_algorithms() -> None:
    """Undo :func:`patch_algorithms`; without a patch this does nothing."""
    original = getattr(BaseAlgorithm._wrap_env, _ORIGINAL, None)
    if original is not None:
        BaseAlgorithm._wrap_env = staticmethod(original)  # type: ignore[method-assign]
