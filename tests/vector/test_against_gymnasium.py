"""Trajectories equal those of Gymnasium's SyncVectorEnv, bit for bit."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import find_highest_version
from gymnasium.vector import AutoresetMode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.testing import assert_identical
from shoal.vector import SyncVectorEnv
from tests.random_environments import RandomEnv
from tests.rollouts import assert_rollouts_are_equal
from tests.strategies import SPACES

NEWEST_TAXI = f"Taxi-v{find_highest_version(None, 'Taxi')}"


def play(factories, mode, steps, seed, copy=True):
    """Step both vectors through the same actions, comparing everything that comes back."""
    ours = SyncVectorEnv(factories, autoreset_mode=mode, copy=copy)
    theirs = gymnasium.vector.SyncVectorEnv(factories, autoreset_mode=mode)
    assert_rollouts_are_equal(ours, theirs, steps, seed)
    for mine, reference in zip(ours.envs, theirs.envs, strict=True):
        yield mine.unwrapped, reference.unwrapped
    ours.close()
    theirs.close()


RANDOM_CASES = given(
    observation_space=SPACES,
    action_space=SPACES,
    mode=st.sampled_from(AutoresetMode),
    num_envs=st.integers(1, 5),
    seed=st.integers(0, 2**31),
    copy=st.booleans(),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@RANDOM_CASES
def test_random_spaces(observation_space, action_space, mode, num_envs, seed, copy):
    factories = [partial(RandomEnv, observation_space, action_space)] * num_envs
    for mine, reference in play(factories, mode, 25, seed, copy):
        assert_identical(mine.received, reference.received)


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(
    "env_id",
    ["CartPole-v1", "MountainCarContinuous-v0", "Acrobot-v1", NEWEST_TAXI, "Blackjack-v1"],
)
def test_long_runs_of_real_environments(env_id, mode):
    factories = [partial(gymnasium.make, env_id, max_episode_steps=40)] * 5
    assert len(list(play(factories, mode, 1500, seed=11))) == 5


@pytest.mark.parametrize("mode", AutoresetMode)
def test_differing_spaces(mode):
    box = gymnasium.spaces.Box
    action = gymnasium.spaces.Discrete(3)
    factories = [
        partial(RandomEnv, box(0, high, (3,), np.float32), action) for high in (1.0, 2.0, 3.0)
    ]
    ours = SyncVectorEnv(factories, observation_mode="different", autoreset_mode=mode)
    theirs = gymnasium.vector.SyncVectorEnv(
        factories, observation_mode="different", autoreset_mode=mode
    )
    assert ours.observation_space == theirs.observation_space
    assert ours.single_observation_space == theirs.single_observation_space
    assert_identical(ours.reset(seed=1), theirs.reset(seed=1))


def test_explicit_observation_spaces():
    single = gymnasium.spaces.Box(0, 9, (3,), np.float32)
    batched = gymnasium.spaces.Box(0, 9, (2, 3), np.float32)
    box = gymnasium.spaces.Box
    factories = [
        partial(RandomEnv, box(0, high, (3,), np.float32), gymnasium.spaces.Discrete(2))
        for high in (1.0, 2.0)
    ]
    envs = SyncVectorEnv(factories, observation_mode=(batched, single))
    assert envs.observation_space is batched
    assert envs.single_observation_space is single
    envs.reset(seed=0)
    assert envs.step([0, 1])[0] in batched
