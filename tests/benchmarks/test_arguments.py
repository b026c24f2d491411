"""The command line of the benchmarks: what it refuses, and what it hands on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.training import TrainingSettings
from shoal._bench import machine
from shoal._bench.runner import Settings


@pytest.fixture(autouse=True)
def polite_kill() -> Iterator[None]:
    """Keep the handler of SIGTERM, which the commands replace."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def called(monkeypatch: pytest.MonkeyPatch, command: str, *arguments: str) -> tuple[int, list[Any]]:
    """The exit status of a command line, and what was handed to the command."""
    calls: list[Any] = []

    def note(*given: Any) -> bool:
        calls.extend(given)
        return True

    monkeypatch.setattr(command, note)
    monkeypatch.setattr("sys.argv", ["benchmarks", *arguments])
    return main(), calls


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["scale", "--cores", "1000000"], "there are "),
        (["scale", "--cores", "0"], "expected a positive number"),
        (["cells", "--workloads", "noop,chess"], "chess unknown; there are noop, "),
        (["cells", "--num-envs", "8,0"], "expected a positive number"),
        (["training", "--steps", "0"], "expected a positive number"),
        (["goals", "--seeds", "1,-2"], "expected numbers that are not negative"),
        (["run", "--contenders", "shoal-fast"], "shoal-fast unknown; there are shoal, "),
    ],
)
def test_wrong_arguments_are_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    complaint: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_figures_hands_on_those_that_match(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["figures", "--only", "burn1ms", "--rounds", "3"]
    status, (settings, figures) = called(monkeypatch, "benchmarks.figures.check", *arguments)
    assert status == 0
    assert settings == Settings(rounds=3)
    assert [figure.what for figure in figures] == [
        "burn1ms 32: shoal-first-come times gymnasium-async"
    ]


def test_figures_refuses_a_text_that_matches_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["figures", "--only", "chess"]
    assert called(monkeypatch, "benchmarks.figures.check", *arguments) == (2, [])
    assert "no figure's description contains 'chess'\n" in capsys.readouterr().err


def test_figures_that_are_slow_must_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["figures", "--only", "PPO"]
    assert called(monkeypatch, "benchmarks.figures.check", *arguments) == (2, [])
    assert "contains 'PPO'; a slow one's does" in capsys.readouterr().err
    status, (_, figures) = called(monkeypatch, "benchmarks.figures.check", *arguments, "--slow")
    assert status == 0
    assert len(figures) == 2


def test_cells_are_all_or_those_that_are_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, handed = called(monkeypatch, "benchmarks.cells.measure_cells", "cells")
    assert len(handed[0]) == 7
    assert handed[1] == [1, 2, 4, 8, 16, 32, 64, 128]
    chosen = ["--workloads", "dict", "--num-envs", "2,4", "--output", str(tmp_path)]
    _, handed = called(monkeypatch, "benchmarks.cells.measure_cells", "cells", *chosen)
    assert handed == [["dict"], [2, 4], Settings(), tmp_path]


def test_scale_keeps_to_the_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept: list[int] = []
    monkeypatch.setattr(machine, "use_cores", kept.append)
    arguments = ["scale", "--cores", "1", "--output", str(tmp_path)]
    status, handed = called(monkeypatch, "benchmarks.scale.measure_scale", *arguments)
    assert status == 0
    assert kept == [1]
    assert handed == [Settings(seconds=0.5), tmp_path]


def test_training_is_told_its_rounds_and_steps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = ["--steps", "500"]
    command = "benchmarks.training.measure_training"
    assert called(monkeypatch, command, "training") == (0, [TrainingSettings()])
    _, handed = called(monkeypatch, command, "training", "--rounds", "3", *chosen)
    assert handed == [TrainingSettings(rounds=3, steps=500)]
    chosen += ["--rounds", "7", "--training-rounds", "3", "--output", str(tmp_path)]
    _, handed = called(monkeypatch, "benchmarks.sb3.measure_sb3", "sb3", *chosen)
    assert handed == [Settings(rounds=7), TrainingSettings(rounds=3, steps=500), tmp_path]
