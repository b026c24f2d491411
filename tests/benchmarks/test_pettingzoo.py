"""The benchmark of PettingZoo's environments measures what it says."""

import pytest

pytest.importorskip("pettingzoo")
pytest.importorskip("supersuit")

from pettingzoo.test import parallel_api_test

from benchmarks.pettingzoo import CONTENDERS, GAMES, REQUIRED, March, measure_pettingzoo
from shoal._bench.runner import Settings


def test_required_figures_are_about_what_there_is() -> None:
    for figure in REQUIRED:
        assert figure.contest is not None
        game, _, names = figure.contest
        assert game in GAMES
        assert set(names) <= set(CONTENDERS)


def test_the_cheap_environment_is_a_parallel_environment() -> None:
    parallel_api_test(March(), 150)


def test_results_are_written(tmp_path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("benchmarks.pettingzoo.REQUIRED", REQUIRED[:1])
    measure_pettingzoo(Settings(rounds=2, seconds=0.01), tmp_path)
    printed = capsys.readouterr().out
    assert "march 8: shoal-inline times supersuit" in printed
    assert "failed" not in printed
    assert {path.name for path in tmp_path.iterdir()} == {"pettingzoo.json", "pettingzoo.md"}
