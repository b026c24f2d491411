"""Shoal next to Stable-Baselines3: what is required, and what is written."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from benchmarks import sb3
from benchmarks.sb3 import REQUIRED, measure_sb3
from benchmarks.training import TrainingRun, TrainingSettings
from shoal._bench.results import Cell
from shoal._bench.runner import Settings

RATES = {"shoal-sb3-dummy": [40.0], "shoal-sb3-subproc": [40.0], "shoal-sb3": [40.0]}


class Scripted:
    """A runner of which everything is known beforehand; Shoal is forty times as fast."""

    versions = {"sb3-dummy": {"python": "3.11.7"}}

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def measure(self, workload: str, num_envs: int, names: Collection[str]) -> Cell:
        contenders = sorted(names)
        rates = {name: RATES.get(name, [1.0]) for name in contenders}
        return Cell(workload, num_envs, contenders, rates)


def test_required_figures_are_those_of_the_design() -> None:
    assert [(figure.what, figure.bound) for figure in REQUIRED] == [
        ("noop 8: shoal-sb3-dummy times sb3-dummy", ">= 4"),
        ("noop 128: shoal-sb3-dummy times sb3-dummy", ">= 6"),
        ("noop 8: shoal-sb3-subproc times sb3-subproc", ">= 30"),
        ("cartpole 8: shoal-sb3-subproc times sb3-subproc", ">= 6"),
        ("VecFrameStack 32: shoal-sb3 times sb3", ">= 3"),
        ("VecNormalize 128: shoal-sb3 times sb3", ">= 1.5"),
        ("PPO 8: shoal-sb3-subproc times sb3-subproc", ">= 1.25"),
        ("PPO 8: shoal-sb3-dummy times sb3-dummy", ">= 1"),
    ]


@pytest.mark.parametrize(("learning", "reached"), [(1.0, True), (9.0, False)])
def test_all_is_measured_written_and_judged(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    learning: float,
    reached: bool,
) -> None:
    def train_alone(_: object, name: str, *__: object) -> TrainingRun:
        seconds = learning if name.startswith("shoal") else 2.0
        return TrainingRun(0.25, seconds, 1000, 20.0)

    def wrapper(_: Settings, *arguments: Any) -> Cell:
        cell = Scripted().measure(*arguments)
        cell.notes["sb3"] = "as it comes"
        return cell

    monkeypatch.setattr(sb3, "Runner", Scripted)
    monkeypatch.setattr(sb3, "measure_wrapper", wrapper)
    monkeypatch.setattr("benchmarks.training.call_alone", train_alone)
    training = TrainingSettings(rounds=2, steps=500)
    assert measure_sb3(Settings(3, 0.5), training, tmp_path) is reached

    data = json.loads((tmp_path / "sb3.json").read_text())
    assert [figure["reached"] for figure in data["figures"]] == [True] * 6 + [reached] * 2
    assert len(data["cells"]) == 6
    assert data["machine"]["cores"] > 0
    assert data["training"]["steps"] == 500
    assert [len(runs) for runs in data["training"]["runs"].values()] == [2] * 4

    written = (tmp_path / "sb3.md").read_text()
    assert "3 interleaved rounds of 0.5 s." in written
    assert "- sb3-dummy: python 3.11.7" in written
    for text in (written, capsys.readouterr().out):
        assert ("MISSED" in text) is not reached
        for part in (
            "VecNormalize x 128, sb3",
            "as it comes",
            "2.00 ± 0%",
            "2 rounds of 500 steps",
        ):
            assert part in text
