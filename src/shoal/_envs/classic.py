"""Kernels for Gymnasium's classic control environments and Blackjack."""

from __future__ import annotations

from math import isfinite
from typing import Any

import gymnasium

from shoal import _native
from shoal.kernels._definition import Kernel

__all__ = [
    "acrobot",
    "blackjack",
    "cart_pole",
    "from_prototype",
    "mountain_car",
    "mountain_car_continuous",
    "pendulum",
]

Env = gymnasium.Env[Any, Any]


def from_prototype(
    prototype: Env, native: _native.Kernel, attributes: dict[str, float], **rest: Any
) -> Kernel:
    """Create a kernel with the spaces, time limit and parameters of an environment.

    Args:
        prototype: The environment. Parameters are read from attributes of the same name.
        native: The native kernel.
        attributes: The parameters that are not attributes of the environment.
        **rest: Further arguments of :class:`Kernel`.
    """
    env: Any = prototype.unwrapped
    names = native.description()["parameters"]
    numbers = {name: float(getattr(env, name)) for name in names if name not in attributes}
    return Kernel(
        native,
        prototype.observation_space,
        prototype.action_space,
        parameters={**numbers, **attributes},
        max_episode_steps=None if prototype.spec is None else prototype.spec.max_episode_steps,
        metadata=prototype.metadata,
        check_nan=False,
        prototype=prototype,
        render_mode=prototype.render_mode,
        **rest,
    )


def cart_pole(prototype: Env) -> Kernel:
    """Create the kernel for CartPole."""
    env: Any = prototype.unwrapped
    attributes = {
        "is_semi_implicit": float(env.kinematics_integrator != "euler"),
        "sutton_barto_reward": float(env._sutton_barto_reward),
    }
    return from_prototype(
        prototype, _native.Kernel("CartPole"), attributes, read_options=read_bounds
    )


def mountain_car(prototype: Env) -> Kernel:
    """Create the kernel for MountainCar."""
    return from_prototype(prototype, _native.Kernel("MountainCar"), {}, read_options=read_bounds)


def mountain_car_continuous(prototype: Env) -> Kernel:
    """Create the kernel for MountainCarContinuous."""
    native = _native.Kernel("MountainCarContinuous")
    return from_prototype(prototype, native, {}, read_options=read_bounds)


def pendulum(prototype: Env) -> Kernel:
    """Create the kernel for Pendulum."""
    return from_prototype(prototype, _native.Kernel("Pendulum"), {}, read_options=read_limits)


def acrobot(prototype: Env) -> Kernel:
    """Create the kernel for Acrobot."""
    env: Any = prototype.unwrapped
    attributes = {"is_nips": float(env.book_or_nips == "nips")}
    return from_prototype(
        prototype, _native.Kernel("Acrobot"), attributes, read_options=read_bounds
    )


def blackjack(prototype: Env) -> Kernel:
    """Create the kernel for Blackjack."""
    native = _native.Kernel("Blackjack")
    return from_prototype(prototype, native, {}, read_options=ignore_options)


def ignore_options(options: dict[str, Any], defaults: dict[str, float]) -> list[float]:  # noqa: ARG001
    """Ignore all options, as the Gymnasium environment does."""
    return []


def read_limits(options: dict[str, Any], defaults: dict[str, float]) -> list[float]:
    """Read numeric options; ignore unknown names, as the Gymnasium environment does."""
    numbers = []
    for name, default in defaults.items():
        value = options.get(name, default)
        try:
            numbers.append(float(value))
        except (TypeError, ValueError) as error:
            raise ValueError(f"An option ({value}) could not be converted to a float.") from error
        if not isfinite(2 * numbers[-1]):
            raise OverflowError(f"option {name!r} is out of range: {value}")
    return numbers


def read_bounds(options: dict[str, Any], defaults: dict[str, float]) -> list[float]:
    """Read the bounds ``low`` and ``high`` of the initial state."""
    low, high = read_limits(options, defaults)
    if low > high:
        raise ValueError(f"Lower bound ({low}) must be lower than higher bound ({high}).")
    return [low, high]
