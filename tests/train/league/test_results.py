"""Results of pairs of players."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._league.results import PairResults

NAMES = ["a", "b", "c"]
GAMES = st.lists(
    st.tuples(st.permutations(NAMES), st.sampled_from([1, 0, -1]), st.integers(0, 5)).map(
        lambda game: (game[0][0], game[0][1], game[1], game[2])
    ),
    max_size=20,
)
HALF_LIVES = st.none() | st.floats(0.01, 1e6)


def make_results(games, **arguments):
    results = PairResults(**arguments)
    for game in games:
        results.record(*game)
    return results


def test_counts_from_either_side():
    results = make_results([("b", "a", 1, 3), ("a", "b", 1, 2), ("b", "a", 0, 4)], prior=0)
    assert results.counts("b", "a") == (3, 4, 2)
    assert results.counts("a", "b") == (2, 4, 3)
    assert results.win_rate("b", "a") == pytest.approx(5 / 9)
    assert results.counts("a", "c") == (0, 0, 0)


def test_prior_pulls_win_rates_towards_one_half():
    results = PairResults(prior=2)
    rates = [results.win_rate("a", "b")]
    for _ in range(20):
        results.record("a", "b", 1)
        rates.append(results.win_rate("a", "b"))
    assert rates[0] == 0.5
    assert rates[2] == 0.75
    assert rates == sorted(rates)
    assert PairResults(prior=0).win_rate("a", "b") == 0.5


def test_game_counts_half_after_its_half_life():
    results = make_results([("a", "b", 1), ("a", "b", -1, 10)], half_life=10, prior=0)
    assert results.counts("a", "b")[0] == pytest.approx(0.5)
    results.record("a", "c", 1, 100)
    assert results.counts("a", "b")[0] == pytest.approx(0.5)  # only games of the pair discount


@settings(deadline=None, max_examples=50)
@given(GAMES, HALF_LIVES)
def test_single_and_multiple_games_are_equivalent(games, half_life):
    at_once = make_results(games, half_life=half_life)
    one_by_one = PairResults(half_life)
    one_by_one.record_many(
        (first, second, outcome) for first, second, outcome, count in games for _ in range(count)
    )
    for first in NAMES:
        for second in NAMES:
            assert at_once.counts(first, second) == pytest.approx(one_by_one.counts(first, second))
            rate = at_once.win_rate(first, second)
            assert 0 < rate < 1
            assert rate + at_once.win_rate(second, first) == pytest.approx(1)


@settings(deadline=None, max_examples=50)
@given(GAMES, GAMES, HALF_LIVES)
def test_restored_results_continue_identically(before, after, half_life):
    results = make_results(before, half_life=half_life)
    state = results.state()
    restored = PairResults.from_state(json.loads(json.dumps(state)))
    assert restored.state() == state
    for game in after:
        results.record(*game)
        restored.record(*game)
    assert restored.state() == results.state()


def test_rename_and_remove():
    results = make_results([("m", "b", 1), ("z", "m", 1, 3), ("b", "z", 0)])
    results.rename("m", "x")
    assert results.counts("x", "b") == (1, 0, 0)
    assert results.counts("x", "z") == (0, 0, 3)
    assert results.counts("m", "z") == (0, 0, 0)
    with pytest.raises(ValueError, match="'b' already has results"):
        results.rename("x", "b")
    results.remove("x")
    assert results.counts("x", "b") == (0, 0, 0)
    assert results.counts("b", "z") == (0, 1, 0)


def test_invalid_arguments():
    results = PairResults()
    with pytest.raises(ValueError, match="players must be different, got 'a' twice"):
        results.record("a", "a", 1)
    with pytest.raises(ValueError, match="outcome must be 1, 0 or -1, got 3"):
        results.record("a", "b", 3)
    with pytest.raises(ValueError, match="count must be at least 0, got -2"):
        results.record("a", "b", 1, -2)
    with pytest.raises(ValueError, match="half_life must be a positive number or None, got 0"):
        PairResults(half_life=0)
    with pytest.raises(ValueError, match="prior must be"):
        PairResults(prior=-1)
