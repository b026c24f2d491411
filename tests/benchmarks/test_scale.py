"""What many cores are worth: the arithmetic, and what is needed to measure it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.judging import rate
from benchmarks.scale import REQUIRED, cores_worth, measure_scale, worker_counts
from shoal._bench import machine
from shoal._bench.results import Cell
from shoal._bench.runner import Settings


@pytest.fixture
def cores() -> Iterator[set[int]]:
    """The cores of this process, which a test may change."""
    before = os.sched_getaffinity(0)
    yield before
    os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("cores", "counts"),
    [(1, [1]), (2, [1]), (4, [1, 2, 3]), (9, [1, 2, 4, 8]), (16, [1, 2, 4, 8, 15])],
)
def test_workers_are_varied_up_to_all_cores_but_the_callers(cores: int, counts: list[int]) -> None:
    assert worker_counts(cores) == counts


def test_a_cores_worth_is_the_rate_of_the_loop() -> None:
    rates = {"loop": [1.0, 2.0, 4.0], "shoal-process": [12.0, 26.0, 56.0]}
    cell = Cell("noop", 8, ["loop", "shoal-process", "shoal"], rates, {"shoal": "lost its way"})
    assert cores_worth(cell) == {"loop": 1.0, "shoal-process": 13.0}
    cell.rates.pop("loop")
    assert cores_worth(cell) == {}


def test_required_figures_are_about_cells_that_are_measured() -> None:
    contests = [figure.contest for figure in REQUIRED]
    assert [contest[:2] for contest in contests if contest] == list(scale._PLACES)
    assert [figure.bound for figure in REQUIRED] == [">= 13", ">= 10", ">= 40"]


def test_cores_can_be_limited(cores: set[int]) -> None:
    machine.use_cores(1)
    assert os.sched_getaffinity(0) == {min(cores)}
    assert machine.describe()["cores"] == machine.core_count() == 1


@pytest.mark.parametrize(
    ("required_cores", "judged"), [(1, True), pytest.param(1000, False, marks=pytest.mark.slow)]
)
def test_scale_is_measured_written_and_judged_where_there_are_the_cores(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    cores: set[int],
    required_cores: int,
    judged: bool,
) -> None:
    machine.use_cores(1)
    monkeypatch.setattr(scale, "_REQUIRED_CORES", required_cores)
    impossible = rate("shoal-process", "noop", 8, at_least=1e6)
    monkeypatch.setattr(scale, "REQUIRED", (impossible,))
    monkeypatch.setattr(scale, "_PLACES", (("cartpole", 4), ("noop", 8)))
    monkeypatch.setattr(scale, "_STAIRCASE", ("cartpole", 4))
    assert measure_scale(Settings(2, 0.02), tmp_path) is not judged
    data = json.loads((tmp_path / "scale.json").read_text())
    assert [cell["cores_worth"]["loop"] for cell in data["cells"]] == [1.0, 1.0]
    assert "shoal, 1 worker" in data["cells"][0]["cores_worth"]
    assert "shoal, 1 worker" not in data["cells"][1]["cores_worth"]
    assert len(data["figures"]) == judged
    assert ("MISSED" in (tmp_path / "scale.md").read_text()) is judged


def test_scale_needs_no_plots() -> None:
    look = "import sys, benchmarks.__main__, benchmarks.scale; print('matplotlib' in sys.modules)"
    root = Path(__file__).parents[2]
    answer = subprocess.run([sys.executable, "-c", look], cwd=root, capture_output=True, text=True)
    assert (answer.stdout, answer.stderr) == ("False\n", "")
