"""Shoal against the best peer: which one that is, and where Shoal is behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import cells
from benchmarks.cells import measure_cells, standing, standings_table
from shoal._bench.results import Cell
from shoal._bench.runner import Settings


def cell(**rates: list[float]) -> Cell:
    named = {name.replace("_", "-"): values for name, values in rates.items()}
    return Cell("noop", 8, list(named), named)


def test_the_best_peer_has_the_highest_median() -> None:
    # The one with the highest single rate, and the highest mean, is another.
    found = standing(
        cell(shoal=[30.0, 6.0, 8.0], sb3_dummy=[5.0, 99.0, 1.0], gymnasium_sync=[6.0, 6.0, 1.0])
    )
    assert found.best == "gymnasium-sync"
    assert found.ratio == 5.0
    assert not found.is_behind


def test_only_peers_are_looked_at() -> None:
    found = standing(cell(shoal=[1.0], loop=[9.0], shoal_process=[9.0], pufferlib_mp=[2.0]))
    assert found.best == "pufferlib-mp"
    assert found.is_behind


def test_a_peer_that_failed_is_skipped_and_a_cell_without_peers_has_no_best() -> None:
    lost = Cell("noop", 8, ["shoal", "sb3-dummy"], {"shoal": [1.0]}, {"sb3-dummy": "lost"})
    assert standing(lost)[1:] == (None, None)
    lost.rates["gymnasium-sync"] = [0.5]
    assert standing(lost)[1:] == ("gymnasium-sync", 2.0)


def test_the_table_has_a_row_for_each_workload_and_a_column_for_each_size() -> None:
    places = [
        Cell("noop", 1, [], {"shoal": [3.0], "sb3-dummy": [2.0]}),
        Cell("noop", 2, [], {"sb3-dummy": [2.0]}),
        Cell("dict", 1, [], {"shoal": [3.0]}),
        Cell("dict", 2, [], {"shoal": [1.0], "gymnasium-sync": [2.0]}),
    ]
    table = standings_table([standing(each) for each in places])
    assert table.header == ["", "1", "2"]
    assert table.rows == [
        ["noop", "1.50 sb3-dummy", "failed sb3-dummy"],
        ["dict", "no peer", "0.50 gymnasium-sync"],
    ]


def test_cells_are_measured_and_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The loop over a single environment that does nothing is faster than any vector.
    monkeypatch.setattr(cells, "_PEERS", ("gymnasium-sync", "loop"))
    measure_cells(["noop"], [1, 2], Settings(2, 0.02), tmp_path)
    data = json.loads((tmp_path / "cells.json").read_text())
    assert [each["num_envs"] for each in data["standings"]] == [1, 2]
    assert {each["best"] for each in data["standings"]} == {"loop"}
    assert set(data["cells"][0]["contenders"]) == {"shoal", "gymnasium-sync", "loop"}
    printed, written = capsys.readouterr().out, (tmp_path / "cells.md").read_text()
    for text in (printed, written):
        assert "Below 1.0: 2 of 2 cells." in text
        assert " of loop; 2 slots, inline: its steps are too short to share" in text
