"""Rollouts of Atari vectors with random actions."""

import numpy as np

COUNTS = ("lives", "frame_number", "episode_frame_number")


def random_rollout(envs, steps, seed=0):
    """Yield observations, rewards, flags and counts of each step."""
    random = np.random.default_rng(seed)
    space = envs.single_action_space
    for _ in range(steps):
        actions = random.integers(space.n, size=envs.num_envs)
        *results, infos = envs.step(actions)
        yield [*results, *(infos[key] for key in COUNTS)]


def assert_same_rollouts(rollout, other):
    for got_step, expected_step in zip(rollout, other, strict=True):
        for got, expected in zip(got_step, expected_step, strict=True):
            np.testing.assert_array_equal(got, expected)
