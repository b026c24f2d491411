"""One policy in worlds that differ from slot to slot: parameters of a kernel, then any functions.

A controller pushes pendulums straight up, on five planets. The motor is strong enough for that on
the Moon and on Mars, where it loses little (returns near -50), and not on the Earth and beyond
(-1000 and less). Then all of them are moved to the Moon, where the five means become alike. In the
end functions make the environments: one for each slot, each with parameters of its own.
"""

import gymnasium as gym
import numpy as np

import shoal

GRAVITY = {"Moon": 1.62, "Mars": 3.72, "Earth": 9.81, "Neptune": 11.15, "Jupiter": 24.79}
EACH = 200  # pendulums on each planet
STEPS = 200  # as long as an episode


def control(observations):
    """Push against the angle and the speed, as hard as the motor can."""
    cosine, sine, speed = observations.T
    return np.clip(-8.0 * np.arctan2(sine, cosine) - 2.0 * speed, -2.0, 2.0)[:, None]


def returns(envs):
    """What each slot gains in an episode."""
    observations, _ = envs.reset(seed=0)
    total = np.zeros(envs.num_envs)
    for _ in range(STEPS):
        observations, rewards, *_ = envs.step(control(observations))
        total += rewards
    return total


with shoal.make("Pendulum-v1", num_envs=EACH * len(GRAVITY)) as envs:
    envs.set_attr("g", np.repeat(list(GRAVITY.values()), EACH).tolist())
    at_home = returns(envs).reshape(len(GRAVITY), EACH).mean(axis=1)
    envs.set_attr("g", GRAVITY["Moon"])
    on_the_moon = returns(envs).reshape(len(GRAVITY), EACH).mean(axis=1)
print(f"{envs.num_envs} pendulums, {STEPS} steps each, twice")
for planet, before, after in zip(GRAVITY, at_home, on_the_moon, strict=True):
    print(f"{planet}: a mean return of {before:.0f}, and on the Moon {after:.0f}")

worlds = [lambda g=g: gym.make("Pendulum-v1", g=g) for g in GRAVITY.values()]
with shoal.make(worlds) as envs:
    gained = returns(envs).round().astype(int)
    print(f"{len(worlds)} functions made worlds with g = {envs.get_attr('g')}: returns of {gained}")
