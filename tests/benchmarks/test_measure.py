"""Measuring a group of figures: cells, rounds, tables and the result."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import measure
from benchmarks.figures import Figure, Group
from benchmarks.measure import measure_figures, missing_requirement
from benchmarks.turns import Measuring
from shoal._bench.results import Cell
from shoal._bench.runner import Settings

RATES = {"fast": [8.0, 4.0, 6.0], "slow": [2.0, 1.0, 3.0]}
FIGURES = (
    Figure("group", "noop", 8, "fast", "slow", "ratio", ">= 4"),
    Figure("group", "dict", 8, "slow", "", "million steps/s", ""),
    Figure("group", "noop", 8, "slow", "third", "ratio", "", rounds=7),
    Figure("group", "PPO", 8, "fast", "slow", "ratio", ">= 1", rounds=2),
)
GROUP = Group("group", "The group", "A legend.", 5, 0.5, FIGURES, packages=("numpy", "no-such"))

Calls = list[tuple[str, str, int, set[str], int, float]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Every measured cell: by whom, workload, size, contenders, rounds and seconds."""
    calls: Calls = []

    def cell(by: str, workload: str, size: int, names: Collection[str], settings: Settings) -> Cell:
        calls.append((by, workload, size, set(names), settings.rounds, settings.seconds))
        rates = {name: RATES[name] for name in names if name in RATES}
        failures = {name: "lost its way" for name in names if name not in RATES}
        return Cell(workload, size, [*names], rates, failures)

    class Scripted:
        versions = {"fast": {"python": "3.11.7"}}

        def __init__(self, _: Any, settings: Measuring) -> None:
            self.settings = settings

        def __enter__(self) -> Scripted:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def measure(self, workload: str, size: int, names: Collection[str]) -> Cell:
            return cell("runner", workload, size, names, self.settings)

    def special(workload: str, size: int, names: Collection[str], settings: Measuring) -> Cell:
        return cell("turns", workload, size, names, settings)

    monkeypatch.setattr(measure, "Runner", Scripted)
    monkeypatch.setattr(measure, "measure_special", special)
    return calls


def test_each_cell_is_measured_once_with_all_its_contenders(calls: Calls, tmp_path: Path) -> None:
    measure_figures(GROUP, FIGURES, tmp_path)
    assert calls == [
        ("runner", "noop", 8, {"fast", "slow", "third"}, 7, 0.5),
        ("runner", "dict", 8, {"slow"}, 5, 0.5),
        ("turns", "PPO", 8, {"fast", "slow"}, 2, 0.5),
    ]


def test_rounds_and_seconds_of_the_caller_replace_those_of_the_figures(
    calls: Calls, tmp_path: Path
) -> None:
    measure_figures(GROUP, FIGURES, tmp_path, rounds=3, seconds=0.25)
    assert {call[4:] for call in calls} == {(3, 0.25)}


@pytest.mark.parametrize(("requirement", "reached"), [(">= 4", True), (">= 5", False)])
def test_the_result_is_whether_all_requirements_were_met(
    calls: Calls, tmp_path: Path, requirement: str, reached: bool
) -> None:
    first = replace(FIGURES[0], requirement=requirement)
    assert measure_figures(GROUP, [FIGURES[1], first], tmp_path) is reached


def test_a_complete_group_is_written_as_it_is_printed(
    calls: Calls, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not measure_figures(GROUP, FIGURES, tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["group.md"]
    written = (tmp_path / "new" / "group.md").read_text()
    printed, progress = capsys.readouterr()
    assert "[3/3] PPO x 8\n" in progress
    for text in (written, printed):
        for part in (
            "# The group",
            "5 interleaved rounds of 0.5 s.",
            "`python -m benchmarks figures group`",
            "A legend.",
            "- third failed (noop 8): lost its way",
            "- fast: python 3.11.7",
            "numpy 2",
        ):
            assert part in text
        assert "no-such" not in text
    rows = [[part.strip() for part in row.split("|")[1:-1]] for row in written.splitlines()]
    assert ["noop", "8", "fast", "slow", "ratio", ">= 4", "4.00", "3.00 to 4.00", "reached"] in rows
    assert ["noop", "8", "slow", "third", "ratio", "", "failed", "", "failed"] in rows


def test_a_part_of_a_group_is_not_written(calls: Calls, tmp_path: Path) -> None:
    measure_figures(GROUP, FIGURES[:3], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_group_needs_its_module_and_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    assert missing_requirement(GROUP) is None
    assert missing_requirement(replace(GROUP, needs="no_such_module")) == (
        "the module no_such_module is not installed"
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert missing_requirement(replace(GROUP, device="cuda")) == "PyTorch finds no GPU"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert missing_requirement(replace(GROUP, device="cuda")) is None


def test_a_figure_is_measured_for_real(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A loop over one environment that does nothing is faster than two processes.
    row = Figure("real", "noop", 2, "loop", "shoal-process", "ratio", ">= 2", rounds=2)
    special = Figure("real", "startup", 2, "shoal-process", "", "s", "<= 60", rounds=1)
    group = Group("real", "Real", "", 9, 0.02, (row, special))
    assert measure_figures(group, group.figures, tmp_path)
    assert capsys.readouterr().out.count("reached") == 2
