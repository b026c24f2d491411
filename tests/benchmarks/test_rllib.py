"""RLlib on Shoal's vectors and on its own: what is required, and what is written."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from benchmarks import required
from benchmarks.rllib import REQUIRED, measure_rllib
from shoal._bench.results import Cell
from shoal._bench.runner import Settings


class Scripted:
    """A runner of which everything is known beforehand."""

    versions = {"rllib-sync": {"python": "3.11.7"}}
    rate = 2.0

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def measure(self, workload: str, num_envs: int, names: Collection[str]) -> Cell:
        contenders = sorted(names)
        rates = {name: [self.rate if name == "shoal-rllib" else 1.0] for name in contenders}
        return Cell(workload, num_envs, contenders, rates)


def test_the_required_figures_are_those_of_the_issue() -> None:
    assert {figure.bound for figure in REQUIRED} == {">= 1.5"}
    assert REQUIRED[0].what == "cartpole 8: shoal-rllib times rllib-sync"


@pytest.mark.parametrize(("rate", "reached"), [(2.0, True), (1.4, False)])
def test_all_is_measured_written_and_judged(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rate: float,
    reached: bool,
) -> None:
    monkeypatch.setattr(required, "Runner", Scripted)
    monkeypatch.setattr(Scripted, "rate", rate)
    assert measure_rllib(Settings(rounds=1), tmp_path) is reached
    data = json.loads((tmp_path / "rllib.json").read_text())
    assert [figure["measured"] for figure in data["figures"]] == [rate] * 3
    assert "rllib-async" in (tmp_path / "rllib.md").read_text()
    assert ("MISSED" in capsys.readouterr().out) is not reached
