"""Wrappers by themselves: the vector below them, and the arithmetic."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest
from gymnasium.spaces import Box

from benchmarks import wrappers
from benchmarks.prepared import EPISODE_STEPS, PreparedVecEnv
from benchmarks.wrappers import BARE, WRAPPERS, measure_wrapper, rates_alone
from shoal._bench.process import ContenderError
from shoal._bench.results import paired_ratio
from shoal._bench.runner import Settings

ACTIONS = np.zeros(32, np.int64)
SPACE = Box(-1.0, 1.0, (3,), np.float32)


def test_prepared_batches_are_of_the_space_and_vary() -> None:
    envs = PreparedVecEnv(SPACE, 32)
    batches = [envs.reset(), *(envs.step(ACTIONS)[0] for _ in range(3))]
    assert all(SPACE.contains(observation) for batch in batches for observation in batch)
    assert len({batch.tobytes() for batch in batches}) == 4


@pytest.mark.parametrize("num_envs", [1, 32, 3 * EPISODE_STEPS])
def test_every_slots_episodes_have_the_same_length_and_infos_of_their_end(num_envs: int) -> None:
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


def test_slots_do_not_end_at_once() -> None:
    envs = PreparedVecEnv(SPACE, 32)
    assert max(envs.step(ACTIONS)[2].sum() for _ in range(EPISODE_STEPS)) == 1


def test_changed_infos_of_an_end_are_not_seen_again() -> None:
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
    ours, theirs = (wrappers._wrapped(name, wrapper, 4) for name in ("shoal-sb3", "sb3"))
    np.testing.assert_allclose(ours.reset(), theirs.reset(), rtol=1e-5, atol=1e-6)
    for _ in range(60):
        results, others = ours.step(ACTIONS), theirs.step(ACTIONS)
        for mine, other in zip(results[:3], others[:3], strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
        assert [info.keys() for info in results[3]] == [info.keys() for info in others[3]]


def test_rates_are_those_of_the_wrapper_without_the_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"sb3": 5e-3, "shoal-sb3": 3e-3, BARE: 1e-3}
    names = iter([*seconds] * 100)

    class Timed:
        """Takes as long as was said, for the contender whose turn it is to be made."""

        def __init__(self) -> None:
            self.seconds = seconds[next(names)]

        def step_many(self, _: float) -> tuple[int, float]:
            return 100, 100 * self.seconds

    monkeypatch.setattr(wrappers, "_wrapped", lambda *_: None)
    monkeypatch.setattr(wrappers, "_stepped", lambda _: Timed())
    rates = rates_alone("VecNormalize", 4, ["sb3", "shoal-sb3"], Settings(rounds=2))
    assert list(rates) == ["sb3", "shoal-sb3", BARE]
    assert rates["sb3"] == pytest.approx([250.0] * 8)
    assert rates["shoal-sb3"] == pytest.approx([500.0] * 8)
    assert rates[BARE] == pytest.approx([1000.0] * 8)


def measured(monkeypatch: pytest.MonkeyPatch, names: Collection[str]) -> tuple[object, ...]:
    """What a cell asks to be measured apart."""
    asked: list[object] = []

    def note(_: object, *arguments: object, timeout: float) -> dict[str, list[float]]:
        asked.extend(arguments)
        return {name: [4e6] for name in (*names, BARE)}

    monkeypatch.setattr(wrappers, "call_alone", note)
    cell = measure_wrapper(Settings(), "VecNormalize", 8, names)
    assert cell.notes == {BARE: "2.00 us a step, taken off"}
    assert cell.contenders == list(cell.rates)
    return tuple(asked)


def test_only_the_named_libraries_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, ["sb3"]) == ("VecNormalize", 8, ["sb3"], Settings())


def test_a_wrapper_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, timeout: float) -> None:
        raise ContenderError("lost its way")

    monkeypatch.setattr(wrappers, "call_alone", fail)
    cell = measure_wrapper(Settings(), "VecNormalize", 8, ["sb3", "shoal-sb3"])
    assert cell.rates == {}
    assert cell.failures == dict.fromkeys(["shoal-sb3", "sb3", BARE], "lost its way")


def test_wrappers_are_measured_in_a_process_of_their_own() -> None:
    pytest.importorskip("stable_baselines3")
    cell = measure_wrapper(Settings(1, 0.02), "VecFrameStack", 4, ["sb3", "shoal-sb3"])
    assert cell.failures == {}
    assert [len(rates) for rates in cell.rates.values()] == [4, 4, 4]
    # The vector below takes next to nothing of a step.
    assert paired_ratio(cell.rates[BARE], cell.rates["sb3"]) > 10
