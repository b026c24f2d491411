"""Gymnasium's environments and the kernels that replace them, for comparison."""

import math

import gymnasium
import numpy as np

import shoal

# All environments with a built-in kernel, in all their variants.
CASES = {
    "CartPole-v0": [{}],
    "CartPole-v1": [{}, {"sutton_barto_reward": True}, {"max_episode_steps": 30}],
    "MountainCar-v0": [{}, {"goal_velocity": 0.02}],
    "MountainCarContinuous-v0": [{}, {"goal_velocity": 0.01}],
    "Pendulum-v1": [{}, {"g": 9.81}, {"g": 3}],
    "Acrobot-v1": [{}],
    "Blackjack-v1": [{}, {"sab": False}, {"sab": False, "natural": True}],
    "FrozenLake-v1": [
        {},
        {"is_slippery": False},
        {"success_rate": 0.8, "reward_schedule": (10, -3, 0.5)},
        {"desc": ["SFFHF", "FSFFG"]},
    ],
    "FrozenLake8x8-v1": [{}],
    "CliffWalking-v1": [{}, {"is_slippery": True}],
    "CliffWalkingSlippery-v1": [{}],
    "Taxi-v3": [{}, {"is_rainy": True, "fickle_passenger": True}],
    "Taxi-v4": [
        {},
        {"is_rainy": True},
        {"fickle_passenger": True, "fickle_probability": 0.9},
        {"is_rainy": True, "rainy_probability": 0.5, "fickle_passenger": True},
    ],
}
EVERY_CASE = [
    (name, arguments)
    for name, several in CASES.items()
    if name in gymnasium.registry and "toy" not in name
    for arguments in several
    if not (name == "Taxi-v3" and "Taxi-v4" in gymnasium.registry)
]

# On some processors NumPy uses a separate sine, which differs from the C library's in the last bit.
_ANGLES = np.random.default_rng(0).uniform(-10, 10, 20_000)
NUMPY_SINE_DIFFERS = any(
    function(angle) != reference(angle)
    for function, reference in ((np.sin, math.sin), (np.cos, math.cos))
    for angle in _ANGLES
)
IS_TRIGONOMETRIC = ("CartPole", "Pendulum", "Acrobot")


def identify(case):
    """Return the test ID of a case."""
    name, arguments = case
    return name + "".join(f"-{key}={value}" for key, value in arguments.items())


def both(name, num_envs, arguments, mode="NextStep", **options):
    """Return an inline vector of Gymnasium's environments and a vector of the kernel."""
    common = {"num_envs": num_envs, "autoreset_mode": mode, **options, **arguments}
    return (
        shoal.make(name, backend="inline", **common),
        shoal.make(name, backend="kernel", **common),
    )


def same_numbers(got, expected, name, *, is_reset=False):
    """Whether two arrays are equal, bit for bit if the kernel guarantees that."""
    if isinstance(expected, tuple):
        return all(same_numbers(*pair, name) for pair in zip(got, expected, strict=True))
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    inexact = NUMPY_SINE_DIFFERS and name.startswith(IS_TRIGONOMETRIC)
    # The first observation of Acrobot uses NumPy's float32 sine, not the C library's.
    if inexact or (is_reset and name.startswith("Acrobot")):
        return np.allclose(got, expected, rtol=3e-7, atol=1e-7)
    return got.tobytes() == expected.tobytes()
