"""Which of Gymnasium's environments there are kernels for, and how they are made.

One environment of Gymnasium's is made as a prototype. It checks the arguments as ever, and tells
its spaces, its time limit, its numbers and, where it is a table, its table; the kernel does the
rest. Whatever is not exactly as Gymnasium has it (a subclass, wrappers, a window) has no kernel.

How exactly a step equals Gymnasium's, given the same state and action:

| environment | equal |
| --- | --- |
| MountainCar, MountainCarContinuous | bit for bit: its cosine is the C library's |
| Blackjack, FrozenLake, CliffWalking, Taxi | bit for bit: there is nothing to round |
| CartPole, Pendulum | bit for bit if NumPy's sines are the C library's, else to 1 ulp of float32 |
| Acrobot | as CartPole; the first observation of an episode to 1 ulp of float32 everywhere |
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
from shoal._envs.single_env import of_single
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
    HOCKEY: of_single,
}


def has_builtin_kernel(what: str | EnvSpec, env_kwargs: dict[str, Any]) -> bool:
    """Whether there is a kernel for an environment that is made with these arguments.

    >>> has_builtin_kernel("CartPole-v1", {}), has_builtin_kernel("Acrobot-v1", {})
    (True, True)
    >>> has_builtin_kernel("CartPole-v1", {"render_mode": "human"})
    False
    """
    spec = what if isinstance(what, EnvSpec) else _spec(what)
    if spec is None:
        return False  # gymnasium.make explains what is wrong with it
    render_mode = env_kwargs.get("render_mode", spec.kwargs.get("render_mode"))
    return (
        spec.entry_point in _KERNELS
        and not spec.additional_wrappers
        and render_mode in (None, "rgb_array")
    )


def _spec(name: str) -> EnvSpec | None:
    """What ``gymnasium.make`` takes for a name; without a version, the newest."""
    try:
        namespace, title, version = parse_env_id(name)
        if version is None:
            version = find_highest_version(namespace, title)
        return gymnasium.spec(get_env_id(namespace, title, version))
    except gymnasium.error.Error:
        return None


def builtin_kernel(what: str | EnvSpec, env_kwargs: dict[str, Any]) -> Kernel:
    """The kernel for an environment, with the arguments that ``gymnasium.make`` takes."""
    prototype = gymnasium.make(what, **env_kwargs)
    assert prototype.spec is not None
    assert isinstance(prototype.spec.entry_point, str)
    kernel = _KERNELS[prototype.spec.entry_point](prototype)
    return replace(kernel, spec=prototype.spec, recipe=partial(builtin_kernel, what, env_kwargs))
