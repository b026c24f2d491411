"""Environments of the OpenAI Gym package itself, where it is still installed."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium

__all__ = ["gymnasium_env"]


def gymnasium_env(factory: Callable[[], Any]) -> gymnasium.Env[Any, Any]:
    """Build an environment; one of OpenAI Gym's is put behind Gymnasium's interface by shimmy."""
    if not callable(factory):
        raise TypeError(f"expected a function that makes an environment, got {factory!r}")
    env = factory()
    if isinstance(env, gymnasium.Env):
        return env
    gym: Any = sys.modules.get("gym")
    if gym is None or not isinstance(env, gym.Env):
        raise ValueError(
            f"the environment is of type {type(env)}, expected a gymnasium.Env (or an environment "
            "of OpenAI Gym, where that is installed)"
        )
    try:
        import shimmy
    except ImportError as error:
        raise ImportError(
            "environments of OpenAI Gym are stepped through shimmy: pip install 'shimmy>=2.0'"
        ) from error
    warnings.warn(
        "an environment of OpenAI Gym is stepped through shimmy; better make it one of Gymnasium's",
        stacklevel=2,
    )
    is_recent = "seed" in inspect.signature(env.unwrapped.reset).parameters
    kind = shimmy.GymV26CompatibilityV0 if is_recent else shimmy.GymV21CompatibilityV0
    converted: gymnasium.Env[Any, Any] = kind(env=env)
    return converted
