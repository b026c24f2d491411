"""Tournaments and their tables."""

import io
import sys

import numpy as np
import pytest
from rich.console import Console

from shoal.errors import MissingExtraError
from shoal.train._league import Ratings, run_tournament
from shoal.train._league.standings import PairingResult, Standings
from shoal.train._league.tables import render_ratings, render_standings

STRENGTHS = {"c": 0.0, "a": 1.5, "d": -1.5, "b": 0.7}


def random_play(seed=0):
    random = np.random.default_rng(seed)

    def play(first, second, games):
        chance = 0.8 / (1 + np.exp(STRENGTHS[second] - STRENGTHS[first]))
        wins, draws, losses = random.multinomial(games, [chance, 0.2, 0.8 - chance]).tolist()
        return wins, draws, losses

    return play


def test_each_pair_plays_on_both_sides():
    calls, results = [], []

    def play(first, second, games):
        calls.append((first, second, games))
        return games - 10, 10, 0

    standings = run_tournament(["a", "b", "c"], play, 100, results.append)
    assert sorted(calls) == [(x, y, 50) for x in "abc" for y in "abc" if x != y]
    assert results == [PairingResult(x, y, 40, 10, 0) for x, y, _ in calls]
    assert standings.results == tuple(results)
    for first, second, _ in calls:
        assert standings.pair(first, second) == (40, 20, 40)
    for row in standings.rows():
        assert row[2:7] == (200, 80, 40, 80, 100.0)
    assert standings.expected("a", "b") == pytest.approx(0.5, abs=0.03)


def test_rows_are_ordered_by_points():
    standings = run_tournament(list(STRENGTHS), random_play(), 200)
    rows = standings.rows()
    assert [(row.place, row.player) for row in rows] == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert [row.rating for row in rows] == sorted((row.rating for row in rows), reverse=True)
    for row in rows:
        assert row.games == 600 == row.wins + row.draws + row.losses
        assert row.points == row.wins + row.draws / 2
        assert row.rating == row.mean - 3 * row.deviation
    assert sum(row.points for row in rows) == 6 * 200
    wins, draws, losses = standings.pair("a", "d")
    assert (losses, draws, wins) == standings.pair("d", "a")
    assert standings.expected("a", "d") == pytest.approx((wins + draws / 2) / 200, abs=0.1)


def test_invalid_arguments():
    with pytest.raises(ValueError, match=r"two players or more, each once, got \['a'\]"):
        run_tournament(["a"], random_play(), 2)
    with pytest.raises(ValueError, match="each once"):
        run_tournament(["a", "b", "a"], random_play(), 2)
    for games in (0, 3):
        with pytest.raises(ValueError, match=f"positive even number, got {games}"):
            run_tournament(["a", "b"], random_play(), games)
    for counts in [(1, 0, 0), (3, 0, -1)]:
        with pytest.raises(ValueError, match="must sum to 2, got"):
            run_tournament(["a", "b"], lambda *_, counts=counts: counts, 4)


def test_missing_openskill_fails_before_the_first_game(monkeypatch):
    monkeypatch.setitem(sys.modules, "openskill.models", None)
    with pytest.raises(MissingExtraError, match=r"shoal\[train\]"):
        run_tournament(["a", "b"], lambda *_: pytest.fail("a game was played"), 2)


def printed(table):
    console = Console(file=io.StringIO(), width=150)
    console.print(table)
    return console.file.getvalue()


def test_standings_table():
    results = [PairingResult("[b]ob", "ann", 1, 2, 7), PairingResult("ann", "[b]ob", 7, 2, 1)]
    shown = printed(render_standings(Standings(["[b]ob", "ann"], results)))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines()]
    first, second = (row for row in rows if row and row[0] in ("1", "2"))
    assert first[:4] == ["1", "ann", "16", "14-4-2"]
    assert first[-2:] == ["-", "80"]
    assert second[:4] == ["2", "[b]ob", "4", "2-4-14"]
    assert second[-2:] == ["20", "-"]


def test_ratings_table():
    ratings = Ratings()
    ratings.add("main", "main")
    ratings.add("weak", "scripted")
    ratings.record("main", "weak", 1, count=12)
    shown = printed(render_ratings(ratings.table(step=0)))
    assert shown.index("main") < shown.index("weak")
    assert "scripted" in shown
    assert "12" in shown
    assert f"{ratings.rating('main')[0]:.1f}" in shown


def test_missing_rich_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.table", None)
    with pytest.raises(MissingExtraError, match=r"shoal\[train\]"):
        render_ratings([])
