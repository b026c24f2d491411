"""Who is drawn, and how often."""

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
def test_hard_prefers_whom_it_loses_to(rates):
    weights = pfsp_weights(rates, "hard")
    assert (np.diff(weights[np.argsort(rates)[::-1]]) >= 0).all()


@given(ROUND_RATES)
def test_variance_prefers_equals_and_does_not_care_who_is_better(rates):
    weights = pfsp_weights(rates, "variance")
    distances = np.abs(np.array(rates) - 0.5)
    assert (np.diff(weights[np.argsort(distances)[::-1]]) >= -1e-12).all()
    assert weights == pytest.approx(pfsp_weights([1 - rate for rate in rates], "variance"))


@given(RATES)
def test_even_knows_no_preference(rates):
    assert pfsp_weights(rates, "even") == pytest.approx(1 / len(rates))


@pytest.mark.parametrize("kind", ["hard", "variance", "even"])
@pytest.mark.parametrize("rate", [1.0, 1 - 1e-16, 1e-320])
def test_where_nobody_stands_out_all_are_drawn_alike(kind, rate):
    assert pfsp_weights([rate] * 4, kind).tolist() == [0.25] * 4


def test_weights_that_cannot_be():
    with pytest.raises(ValueError, match="at least one, got"):
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
def test_opponents_are_drawn_as_often_as_they_should_be(kind):
    rates = {"easy": 0.9, "equal": 0.5, "hard": 0.2}
    matchmaker, random, draws = Matchmaker(kind, latest_share=0.25), np.random.default_rng(0), 6000
    drawn = Counter(matchmaker.draw(random, rates, "main") for _ in range(draws))
    assert drawn["main"] / draws == pytest.approx(0.25, abs=0.02)
    for name, weight in zip(rates, pfsp_weights(list(rates.values()), kind), strict=True):
        assert drawn[name] / draws == pytest.approx(0.75 * weight, abs=0.02)


def test_the_ends_of_the_latest_share():
    random, rates = np.random.default_rng(0), {"other": 0.5}
    never, always = Matchmaker(latest_share=0), Matchmaker(latest_share=1)
    assert {never.draw(random, rates, "main") for _ in range(50)} == {"other"}
    assert {always.draw(random, rates, "main") for _ in range(50)} == {"main"}
    assert never.draw(random, {}, "main") == "main"
