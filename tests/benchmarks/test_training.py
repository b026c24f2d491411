"""PPO of Stable-Baselines3: equal work with both vectors, and the rate of learning."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import training
from benchmarks.training import PPOTraining, TrainingRun, TrainingSettings, samplers, train
from benchmarks.turns import Measuring

TINY = TrainingSettings(steps=100, options={"n_steps": 64, "n_epochs": 1})


def test_both_libraries_learn_the_same() -> None:
    pytest.importorskip("stable_baselines3")
    runs = [train(name, 2, TINY) for name in ("shoal-sb3-dummy", "sb3-dummy", "shoal-sb3-subproc")]
    assert {run.steps for run in runs} == {128}
    assert len({run.mean_return for run in runs}) == 1
    assert all(run.mean_return > 5 and run.seconds > 0 for run in runs)


def test_the_rate_is_that_of_learn_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def call_alone(function: Callable[..., TrainingRun], *arguments: object) -> TrainingRun:
        calls.append((function, *arguments))
        return TrainingRun(4.0, 1000, 20.0)

    monkeypatch.setattr(training, "call_alone", call_alone)
    sampler = samplers("PPO-of-SB3", 8, Measuring())["sb3-dummy"]()
    assert isinstance(sampler, PPOTraining)
    assert sampler.sample(0.1) == 250.0
    assert calls == [(train, "sb3-dummy", 8, TrainingSettings())]
