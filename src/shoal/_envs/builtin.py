"""Kernels that replace environments of Gymnasium.

A built-in kernel is created from a prototype, one instance of the Gymnasium environment. The
prototype validates the arguments and provides spaces, time limit, parameters and transition tables.
A kernel replaces only an unmodified environment: not a subclass, not a wrapped environment, and not
one that renders to a window.

Accuracy of a step relative to Gymnasium, for the same state and action:

| environment | accuracy |
| --- | --- |
| MountainCar, MountainCarContinuous | bit-identical: Gymnasium uses the C library's cosine |
| Blackjack, FrozenLake, CliffWalking, Taxi | bit-identical: no rounding is involved |
| CartPole, Pendulum | bit-identical if NumPy uses the C library's sine, else 1 ulp of float32 |
| Acrobot | as CartPole; the first observation of an episode is always within 1 ulp of float32 |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import (
    EnvSpec,
    find_highest_version,
    get_env_id,
    parse_env_id,
)

from shoal._envs.classic import (
    acrobot,
    blackjack,
    cart_pole,
    mountain_car,
    mountain_car_continuous,
    pendulum,
)
from shoal._envs.hockey.registration import ENTRY_POINT as HOCKEY
from shoal._envs.single_env import kernel_of_env
from shoal._envs.toy_text import cliff_walking, frozen_lake, taxi
from shoal.kernels._definition import Kernel

__all__ = ["builtin_kernel", "has_builtin_kernel"]

_CLASSIC, _TOY_TEXT = "gymnasium.envs.classic_control", "gymnasium.envs.toy_text"

_KERNELS: dict[str, Callable[[gymnasium.Env[Any, Any]], Kernel]] = {
    f"{_CLASSIC}.cartpole:CartPoleEnv": cart_pole,
    f"{_CLASSIC}.mountain_car:MountainCarEnv": mountain_car,
    f"{_CLASSIC}.continuous_mountain_car:Continuous_MountainCarEnv": mountain_car_continuous,
    f"{_CLASSIC}.pendulum:PendulumEnv": pendulum,
    f"{_CLASSIC}.acrobot:AcrobotEnv": acrobot,
    f"{_TOY_TEXT}.blackjack:BlackjackEnv": blackjack,
    f"{_TOY_TEXT}.frozen_lake:FrozenLakeEnv": frozen_lake,
    f"{_TOY_TEXT}.cliffwalking:CliffWalkingEnv": cliff_walking,
    f"{_TOY_TEXT}.taxi:TaxiEnv": taxi,
    HOCKEY: kernel_of_env,
}


def has_builtin_kernel(env_id: str | EnvSpec, env_kwargs: dict[str, Any]) -> bool:
    """Whether a kernel replaces the environment that these arguments make.

    >>> has_builtin_kernel("CartPole-v1", {}), has_builtin_kernel("Acrobot-v1", {})
    (True, True)
    >>> has_builtin_kernel("CartPole-v1", {"render_mode": "human"})
    False
    """
    spec = env_id if isinstance(env_id, EnvSpec) else _find_spec(env_id)
    if spec is None:
        return False  # gymnasium.make raises the appropriate error
    render_mode = env_kwargs.get("render_mode", spec.kwargs.get("render_mode"))
    return (
        spec.entry_point in _KERNELS
        and not spec.additional_wrappers
        and render_mode in (None, "rgb_array")
    )


def _find_spec(env_id: str) -> EnvSpec | None:
    """Return the spec that ``gymnasium.make`` uses; the newest if the ID has no version."""
    try:
        namespace, name, version = parse_env_id(env_id)
        if version is None:
            version = find_highest_version(namespace, name)
        return gymnasium.spec(get_env_id(namespace, name, version))
    except gymnasium.error.Error:
        return None


def builtin_kernel(env_id: str | EnvSpec, env_kwargs: dict[str, Any]) -> Kernel:
    """Create the kernel for an environment from the arguments of ``gymnasium.make``."""
    prototype = gymnasium.make(env_id, **env_kwargs)
    assert prototype.spec is not None
    assert isinstance(prototype.spec.entry_point, str)
    kernel = _KERNELS[prototype.spec.entry_point](prototype)
    return replace(kernel, spec=prototype.spec, recipe=partial(builtin_kernel, env_id, env_kwargs))
