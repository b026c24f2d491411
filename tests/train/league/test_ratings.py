"""Ratings of players of known strength."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import MissingExtraError
from shoal.train._league import Ratings

NAMES = ["a", "b", "c", "d"]
GAMES = st.lists(
    st.tuples(st.permutations(NAMES), st.sampled_from([1, 0, -1])).map(
        lambda game: (game[0][0], game[0][1], game[1])
    ),
    max_size=30,
)


def make_ratings(names=NAMES, **arguments):
    ratings = Ratings(**arguments)
    for name in names:
        ratings.add(name, "snapshot")
    return ratings


def synthetic_games(strengths, games, draws=0.3):
    """Generate games by a Bradley-Terry model with a given share of draws."""
    random = np.random.default_rng(7)
    names = list(strengths)
    for _ in range(games):
        first, second = random.choice(names, 2, replace=False)
        chance = 1 / (1 + np.exp(strengths[second] - strengths[first]))
        drawn = random.random() < draws
        outcome = 0 if drawn else 1 if random.random() < chance else -1
        yield str(first), str(second), outcome


def test_table_is_ordered_by_strength():
    strengths = {"c": 0.0, "a": 2.0, "e": -2.0, "b": 1.0, "d": -1.0}
    ratings = make_ratings(strengths)
    ratings.record_many(synthetic_games(strengths, 3000))
    table = ratings.table(step=5)
    assert [row.player for row in table] == ["a", "b", "c", "d", "e"]
    assert [row.rating for row in table] == sorted((row.rating for row in table), reverse=True)
    for row in table:
        assert row.step == 5
        assert (row.mean, row.deviation) == ratings.rating(row.player)
        assert row.rating == row.mean - 3 * row.deviation == ratings.lower_bound(row.player)
        assert row.deviation < 2
    assert sum(row.games for row in table) == 2 * 3000


@pytest.mark.parametrize(("wins", "draws"), [(0.5, 0), (0.3, 0.4), (0.7, 0), (0.4, 0.5), (0.9, 0)])
def test_expected_score_equals_observed_score(wins, draws):
    random = np.random.default_rng(1)
    ratings = make_ratings(drift=0)
    outcomes = random.choice([1, 0, -1], 4000, p=[wins, draws, 1 - wins - draws])
    ratings.record_many(("a", "b", int(outcome)) for outcome in outcomes)
    assert ratings.expected("a", "b") == pytest.approx(wins + draws / 2, abs=0.05)
    assert ratings.expected("a", "b") + ratings.expected("b", "a") == pytest.approx(1)
    assert ratings.expected("c", "d") == ratings.expected("a", "a") == 0.5


def test_draws_reduce_the_difference_in_ratings():
    ratings = make_ratings()
    ratings.record("a", "b", 1, count=10)
    apart = ratings.rating("a")[0] - ratings.rating("b")[0]
    ratings.record("b", "a", 0, count=10)
    assert 0 < ratings.rating("a")[0] - ratings.rating("b")[0] < apart / 2


def test_recent_games_dominate_with_drift():
    ratings = make_ratings()
    ratings.record("a", "b", -1, count=300)
    ratings.record("a", "b", 1, count=300)
    assert ratings.expected("a", "b") > 0.6


def test_like_copies_the_rating():
    ratings = make_ratings()
    ratings.record("a", "b", 1, count=5)
    ratings.add("copy", "snapshot", like="a")
    assert ratings.rating("copy") == ratings.rating("a")
    assert (ratings.games("copy"), ratings.games("a")) == (0, 5)
    ratings.record("a", "b", 1)
    assert ratings.rating("copy") != ratings.rating("a")


def test_single_and_multiple_games_are_equivalent():
    one_by_one, counted, many = make_ratings(), make_ratings(), make_ratings()
    for _ in range(7):
        one_by_one.record("a", "b", -1)
    counted.record("a", "b", -1, count=7)
    counted.record("a", "b", -1, count=0)
    many.record_many([("a", "b", -1)] * 7)
    assert one_by_one.state() == counted.state() == many.state()


@settings(deadline=None, max_examples=50)
@given(GAMES, GAMES, st.sampled_from([0.0, 25 / 300, 0.3]))
def test_restored_ratings_continue_identically(before, after, drift):
    ratings = make_ratings(drift=drift)
    ratings.record_many(before)
    state = ratings.state()
    restored = Ratings.from_state(json.loads(json.dumps(state)))
    assert restored.state() == state
    assert restored.table(1) == ratings.table(1)
    for each in ratings, restored:
        each.record_many(after)
        each.add("recent", "exploiter", like="a")
    assert restored.state() == ratings.state() != state


def test_remove_does_not_change_other_ratings():
    ratings = make_ratings()
    ratings.record("a", "b", 1)
    before = ratings.rating("b")
    ratings.remove("a")
    assert "a" not in ratings
    assert ratings.rating("b") == before
    ratings.add("a", "main")
    assert ratings.games("a") == 0


def test_invalid_games():
    ratings = make_ratings(["a", "b"])
    state = ratings.state()
    with pytest.raises(ValueError, match="unknown player 'x', the players are 'a', 'b'"):
        ratings.record("a", "x", 1)
    with pytest.raises(ValueError, match="players must be different, got 'a' twice"):
        ratings.record("a", "a", 1)
    with pytest.raises(ValueError, match="outcome must be 1, 0 or -1, got 2"):
        ratings.record_many([("a", "b", 1), ("a", "b", 2)])
    with pytest.raises(ValueError, match="count must be at least 0, got -1"):
        ratings.record("a", "b", 1, count=-1)
    with pytest.raises(ValueError, match="the player 'a' already exists"):
        ratings.add("a", "main")
    with pytest.raises(ValueError, match="unknown player 'x'"):
        ratings.add("c", "main", like="x")
    with pytest.raises(ValueError, match="unknown player 'x'"):
        ratings.remove("x")
    with pytest.raises(ValueError, match="drift must be"):
        Ratings(drift=-1)
    assert ratings.state() == state


def test_missing_openskill_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openskill.models", None)
    with pytest.raises(MissingExtraError, match=r"shoal\[train\]"):
        Ratings()
