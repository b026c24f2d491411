"""Step environments with a different parameter in each slot, as a kernel and as Python classes.

A controller holds pendulums upright under the gravity of five places. The motor is strong enough on
the Moon and on Mars (returns near -50), and too weak on the Earth, Neptune and Jupiter (-1000 and
less). With the Moon's gravity in all slots, the five means become similar. At the end, a list of
functions makes one Python environment per slot.
"""

import gymnasium as gym
import numpy as np

import shoal

GRAVITY = {"Moon": 1.62, "Mars": 3.72, "Earth": 9.81, "Neptune": 11.15, "Jupiter": 24.79}
EACH = 200  # pendulums per place
STEPS = 200  # the length of an episode


def control(observations):
    """Push against the angle and the speed, up to the limit of the motor."""
    cosine, sine, speed = observations.T
    return np.clip(-8.0 * np.arctan2(sine, cosine) - 2.0 * speed, -2.0, 2.0)[:, None]


def returns(envs):
    """The return of one episode in each slot."""
    observations, _ = envs.reset(seed=0)
    total = np.zeros(envs.num_envs)
    for _ in range(STEPS):
        observations, rewards, *_ = envs.step(control(observations))
        total += rewards
    return total


with shoal.make("Pendulum-v1", num_envs=EACH * len(GRAVITY)) as envs:
    envs.set_attr("g", np.repeat(list(GRAVITY.values()), EACH).tolist())
    own_gravity = returns(envs).reshape(len(GRAVITY), EACH).mean(axis=1)
    envs.set_attr("g", GRAVITY["Moon"])
    moon_gravity = returns(envs).reshape(len(GRAVITY), EACH).mean(axis=1)
print(f"{envs.num_envs} pendulums, {STEPS} steps each, twice")
for place, own, moon in zip(GRAVITY, own_gravity, moon_gravity, strict=True):
    print(f"{place}: mean return {own:.0f}; with the Moon's gravity {moon:.0f}")

factories = [lambda g=g: gym.make("Pendulum-v1", g=g) for g in GRAVITY.values()]
with shoal.make(factories) as envs:
    print(f"Python environments with g = {envs.get_attr('g')}: returns {returns(envs).round()}")
