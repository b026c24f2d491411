"""Training: that both libraries do the same work, in which order, and how it is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import training
from benchmarks.training import (
    Training,
    TrainingRun,
    TrainingSettings,
    measure_training,
    rotated,
    train,
    training_table,
)
from shoal._bench.process import ContenderError

TINY = TrainingSettings(rounds=1, steps=100, options={"n_steps": 64, "n_epochs": 1})
NAMES = ["shoal-sb3-dummy", "sb3-dummy", "shoal-sb3-subproc", "sb3-subproc"]


def scripted(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float], lost: str = ""
) -> list[str]:
    """Let every training take as long as is said, in a list of those that were asked for."""
    asked: list[str] = []

    def run(function: Callable[..., TrainingRun], name: str, num_envs: int, _: object) -> object:
        assert function is train
        assert num_envs == 8
        asked.append(name)
        if name == lost and asked.count(name) == 2:
            raise ContenderError("lost its way")
        return TrainingRun(0.5, seconds[name], 1000, 20.0)

    monkeypatch.setattr(training, "call_alone", run)
    return asked


def test_both_libraries_learn_the_same() -> None:
    pytest.importorskip("stable_baselines3")
    runs = [train(name, 2, TINY) for name in ("shoal-sb3-dummy", "sb3-dummy", "shoal-sb3-subproc")]
    assert {run.steps for run in runs} == {128}
    assert len({run.mean_return for run in runs}) == 1
    assert all(run.mean_return > 5 and run.construction > 0 and run.learning > 0 for run in runs)


def test_the_order_rotates() -> None:
    orders = ["".join(rotated("abc", turn)) for turn in range(4)]
    assert orders == ["abc", "bca", "cab", "abc"]
    assert rotated([], 3) == []


def test_runs_are_interleaved_and_rates_are_those_of_learning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = scripted(monkeypatch, {"sb3-dummy": 5.0, "shoal-sb3-dummy": 2.0})
    run = Training(TrainingSettings(rounds=3))
    cell = run.measure("PPO", 8, {"sb3-dummy", "shoal-sb3-dummy"})
    ours, theirs = "shoal-sb3-dummy", "sb3-dummy"
    assert asked == [ours, theirs, theirs, ours, ours, theirs]
    assert cell.rates == {ours: [500.0] * 3, theirs: [200.0] * 3}
    assert run.as_json()["runs"][theirs][0] == {
        "construction": 0.5,
        "learning": 5.0,
        "steps": 1000,
        "mean_return": 20.0,
    }


def test_the_table_tells_seconds_and_how_many_times_faster_shoal_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = scripted(monkeypatch, dict(zip(NAMES, [4.0, 5.0, 3.0, 6.0], strict=True)))
    assert measure_training(TrainingSettings(rounds=2))
    assert len(asked) == 8
    assert capsys.readouterr().out.splitlines()[:6] == [
        "PPO x 8             learn, s  construct, s  return     x",
        "─────────────────  ─────────  ────────────  ──────  ────",
        "shoal-sb3-dummy    4.00 ± 0%     0.50 ± 0%    20.0",
        "sb3-dummy          5.00 ± 0%     0.50 ± 0%    20.0  1.25",
        "shoal-sb3-subproc  3.00 ± 0%     0.50 ± 0%    20.0",
        "sb3-subproc        6.00 ± 0%     0.50 ± 0%    20.0  2.00",
    ]


def test_a_training_that_fails_is_reported_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = dict.fromkeys(NAMES, 1.0)
    asked = scripted(monkeypatch, seconds, lost="sb3-dummy")
    run = Training(TrainingSettings(rounds=4))
    cell = run.measure("PPO", 8, NAMES)
    assert cell.failures == {"sb3-dummy": "lost its way"}
    assert asked.count("sb3-dummy") == 2
    assert [len(rates) for rates in cell.rates.values()] == [4, 4, 4]
    assert training_table(cell, run.runs).rows[1] == ["sb3-dummy", "failed", "", "", ""]
    scripted(monkeypatch, seconds, lost="sb3-dummy")
    assert not measure_training(TrainingSettings(rounds=2))
    assert "sb3-dummy failed (PPO 8): lost its way" in capsys.readouterr().out
