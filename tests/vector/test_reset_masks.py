"""Resets of some slots by `options["reset_mask"]`."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import shoal
from shoal.errors import ResetMaskError, SlotFinishedError


@pytest.fixture
def envs():
    vector = shoal.make("CartPole-v1", num_envs=3, autoreset_mode=AutoresetMode.DISABLED)
    yield vector
    vector.close()


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([True, False, True], "numpy array, got list"),
        (np.array([True]), r"shape `\(3,\)`, got \(1,\)"),
        (np.array([[True, True, True]]), r"shape `\(3,\)`"),
        (np.array([1, 1, 0]), "dtype=np.bool_"),
        (np.array([False, False, False]), "at least one True value"),
    ],
)
def test_invalid_masks(envs, mask, message):
    envs.reset(seed=0)
    for error in (ResetMaskError, AssertionError, ValueError, TypeError):
        with pytest.raises(error, match=message):
            envs.reset(options={"reset_mask": mask})


def test_first_reset_must_cover_all_slots(envs):
    with pytest.raises(ResetMaskError, match="slot 2 has never been reset"):
        envs.reset(options={"reset_mask": np.array([True, True, False])})
    envs.reset(options={"reset_mask": np.array([True, True, True])})
    envs.reset(options={"reset_mask": np.array([True, True, False])})


def test_options_are_not_modified(envs):
    seen = []

    class Spy(gymnasium.Wrapper):
        def reset(self, *, seed=None, options=None):
            seen.append(dict(options))
            options["modified"] = True
            return self.env.reset(seed=seed)

    vector = shoal.make("CartPole-v1", num_envs=2, wrappers=[Spy])
    mask = np.array([True, True])
    options = {"reset_mask": mask, "level": 3}
    vector.reset(options=options)
    assert options == {"reset_mask": mask, "level": 3}
    assert seen == [{"level": 3}, {"level": 3}]
    plain = {"level": 4}
    vector.reset(options=plain)
    assert plain == {"level": 4}
    vector.close()


def test_finished_slot_needs_a_reset(envs):
    envs.reset(seed=0)
    terminated = np.zeros(3, np.bool_)
    while not terminated.any():
        *_, terminated, _, _ = envs.step([1, 1, 0])
    slot = np.flatnonzero(terminated)[0]
    for error in (SlotFinishedError, AssertionError, gymnasium.error.ResetNeeded):
        with pytest.raises(error, match=f"slot {slot}"):
            envs.step([1, 1, 0])
    before, _ = envs.reset(options={"reset_mask": terminated})
    after, *_ = envs.step([1, 1, 0])
    assert after.shape == before.shape


def test_masked_reset_returns_unmodified_observations_of_other_slots(envs):
    envs.reset(seed=0)
    observations, *_ = envs.step([1, 0, 1])
    kept = observations.copy()
    observations[:] = 99
    again, _ = envs.reset(seed=9, options={"reset_mask": np.array([False, True, False])})
    assert (again[[0, 2]] == kept[[0, 2]]).all()
    assert (again[1] != kept[1]).any()
