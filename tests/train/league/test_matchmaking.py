"""Matchmaking: weights and frequencies of opponents."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.train._league.matchmaking import Matchmaker, pfsp_weights

RATES = st.lists(st.floats(0, 1), min_size=1, max_size=12)
ROUND_RATES = st.lists(st.integers(0, 1000).map(lambda rate: rate / 1000), min_size=1, max_size=12)
KINDS = st.sampled_from(["hard", "variance", "even"])


@given(RATES, KINDS)
def test_weights_are_probabilities(rates, kind):
    weights = pfsp_weights(rates, kind)
    assert weights.shape == (len(rates),)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)


@given(RATES)
def test_hard_prefers_stronger_opponents(rates):
    weights = pfsp_weights(rates, "hard")
    assert (np.diff(weights[np.argsort(rates)[::-1]]) >= 0).all()


@given(ROUND_RATES)
def test_variance_prefers_equal_opponents_and_is_symmetric(rates):
    weights = pfsp_weights(rates, "variance")
    distances = np.abs(np.array(rates) - 0.5)
    assert (np.diff(weights[np.argsort(distances)[::-1]]) >= -1e-12).all()
    assert weights == pytest.approx(pfsp_weights([1 - rate for rate in rates], "variance"))


@given(RATES)
def test_even_is_uniform(rates):
    assert pfsp_weights(rates, "even") == pytest.approx(1 / len(rates))


@pytest.mark.parametrize("kind", ["hard", "variance", "even"])
@pytest.mark.parametrize("rate", [1.0, 1 - 1e-16, 1e-320])
def test_equal_win_rates_give_equal_weights(kind, rate):
    assert pfsp_weights([rate] * 4, kind).tolist() == [0.25] * 4


def test_invalid_arguments():
    with pytest.raises(ValueError, match="must be a non-empty list, got"):
        pfsp_weights([], "hard")
    with pytest.raises(ValueError, match="between 0 and 1"):
        pfsp_weights([0.5, 1.5], "hard")
    with pytest.raises(ValueError, match="between 0 and 1"):
        pfsp_weights([float("nan")], "even")
    with pytest.raises(ValueError, match="one of hard, variance, even, got 'soft'"):
        pfsp_weights([0.5], "soft")
    with pytest.raises(ValueError, match="one of hard, variance, even, got 'soft'"):
        Matchmaker("soft")
    with pytest.raises(ValueError, match="latest_share must lie between 0 and 1, got 2"):
        Matchmaker(latest_share=2)


@pytest.mark.parametrize("kind", ["hard", "variance", "even"])
def test_frequencies_match_weights(kind):
    rates = {"easy": 0.9, "equal": 0.5, "hard": 0.2}
    matchmaker, random, draws = Matchmaker(kind, latest_share=0.25), np.random.default_rng(0), 6000
    drawn = Counter(matchmaker.draw(random, rates, "main") for _ in range(draws))
    assert drawn["main"] / draws == pytest.approx(0.25, abs=0.02)
    for name, weight in zip(rates, pfsp_weights(list(rates.values()), kind), strict=True):
        assert drawn[name] / draws == pytest.approx(0.75 * weight, abs=0.02)


def test_latest_share_of_zero_and_one():
    random, rates = np.random.default_rng(0), {"other": 0.5}
    never, always = Matchmaker(latest_share=0), Matchmaker(latest_share=1)
    assert {never.draw(random, rates, "main") for _ in range(50)} == {"other"}
    assert {always.draw(random, rates, "main") for _ in range(50)} == {"main"}
    assert never.draw(random, {}, "main") == "main"
