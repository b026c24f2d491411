"""Wrappers alone: the vector of prepared batches, and the subtraction of its time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box

from benchmarks.prepared import EPISODE_STEPS, PreparedVecEnv
from benchmarks.turns import Measuring, measure_special
from benchmarks.wrappers import LIBRARIES, WRAPPERS, WrapperAlone, wrapped

ACTIONS = np.zeros(32, np.int64)
SPACE = Box(-1.0, 1.0, (3,), np.float32)


def test_prepared_batches_are_elements_of_the_space_and_vary() -> None:
    envs = PreparedVecEnv(SPACE, 32)
    batches = [envs.reset(), *(envs.step(ACTIONS)[0] for _ in range(3))]
    assert all(SPACE.contains(observation) for batch in batches for observation in batch)
    assert len({batch.tobytes() for batch in batches}) == 4


@pytest.mark.parametrize("num_envs", [1, 32, 3 * EPISODE_STEPS])
def test_episodes_have_equal_length_and_a_terminal_observation(num_envs: int) -> None:
    envs = PreparedVecEnv(SPACE, num_envs)
    ended = np.zeros(num_envs, int)
    for _ in range(2 * EPISODE_STEPS):
        _, rewards, dones, infos = envs.step(ACTIONS)
        assert rewards.dtype == np.float32
        assert [("terminal_observation" in info) for info in infos] == dones.tolist()
        assert all(
            SPACE.contains(infos[slot]["terminal_observation"]) for slot in dones.nonzero()[0]
        )
        ended += dones
    assert set(ended) == {2}


def test_the_slots_end_one_after_the_other() -> None:
    envs = PreparedVecEnv(SPACE, 32)
    assert max(envs.step(ACTIONS)[2].sum() for _ in range(EPISODE_STEPS)) == 1


def test_modified_infos_of_an_ending_are_not_returned_again() -> None:
    envs = PreparedVecEnv(SPACE, 1)
    for _ in range(2):
        infos = next(
            infos for _, _, dones, infos in iter(lambda: envs.step(ACTIONS), 0) if dones[0]
        )
        assert len(infos[0]["terminal_observation"]) == 3
        infos[0]["terminal_observation"] = np.zeros(12)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_both_libraries_wrappers_do_the_same_work(wrapper: str) -> None:
    pytest.importorskip("stable_baselines3")
    ours, theirs = (wrapped(name, wrapper, 4) for name in LIBRARIES)
    np.testing.assert_allclose(ours.reset(), theirs.reset(), rtol=1e-5, atol=1e-6)
    for _ in range(60):
        results, others = ours.step(ACTIONS), theirs.step(ACTIONS)
        for mine, other in zip(results[:3], others[:3], strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
        assert [info.keys() for info in results[3]] == [info.keys() for info in others[3]]


def test_the_time_of_the_bare_vector_is_subtracted() -> None:
    class Timed:
        def __init__(self, seconds_per_step: float) -> None:
            self.seconds_per_step = seconds_per_step

        def step_many(self, seconds: float) -> tuple[int, float]:
            return 100, 100 * self.seconds_per_step

    sampler: Any = WrapperAlone.__new__(WrapperAlone)
    sampler._wrapped, sampler._bare = Timed(5e-3), Timed(1e-3)
    assert sampler.sample(0.1) == pytest.approx(250.0)


def test_wrappers_are_measured_in_a_new_process() -> None:
    pytest.importorskip("stable_baselines3")
    names = list(LIBRARIES)
    cell = measure_special("VecFrameStack", 4, names, Measuring(2, 0.02))
    assert cell.failures == {}
    assert [len(rates) for rates in cell.rates.values()] == [2, 2]
    # Copying four stacked images of 84 x 84 is slower than 10 ns and faster than 10 ms.
    assert all(1e2 < rate < 1e8 for rates in cell.rates.values() for rate in rates)
