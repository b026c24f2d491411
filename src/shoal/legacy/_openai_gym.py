"""Conversion of environments of the OpenAI Gym package, if it is installed."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium

__all__ = ["gymnasium_env"]


def gymnasium_env(factory: Callable[[], Any]) -> gymnasium.Env[Any, Any]:
    """Make an environment; an environment of OpenAI Gym is converted with shimmy."""
    if not callable(factory):
        raise TypeError(f"expected a function that makes an environment, got {factory!r}")
    env = factory()
    if isinstance(env, gymnasium.Env):
        return env
    gym: Any = sys.modules.get("gym")
    if gym is None or not isinstance(env, gym.Env):
        raise ValueError(
            f"the environment is of type {type(env)}, expected a gymnasium.Env (or an environment "
            "of OpenAI Gym, if that is installed)"
        )
    try:
        import shimmy
    except ImportError as error:
        raise ImportError(
            "environments of OpenAI Gym need shimmy: pip install 'shimmy>=2.0'"
        ) from error
    warnings.warn(
        "an environment of OpenAI Gym is converted with shimmy; consider porting it to Gymnasium",
        stacklevel=2,
    )
    is_v26 = "seed" in inspect.signature(env.unwrapped.reset).parameters
    wrapper = shimmy.GymV26CompatibilityV0 if is_v26 else shimmy.GymV21CompatibilityV0
    converted: gymnasium.Env[Any, Any] = wrapper(env=env)
    return converted
