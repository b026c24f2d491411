"""Weighted random choice."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.train._weighted_draw import WeightedDraw


class ConstantGenerator:
    """A random generator that always returns the same number."""

    def __init__(self, number):
        self._number = float(number)

    def random(self):
        return self._number


@pytest.mark.parametrize(
    "weights", [[1], [1, 1], [0.7, 0.3], [3, 0, 1], [0, 5, 0], [0, 0, 1, 1], [1e-3, 1e3], [0.1] * 9]
)
def test_frequencies_match_weights(weights):
    draw, rng = WeightedDraw(range(len(weights)), weights), np.random.default_rng(0)
    counts = np.bincount([draw.draw(rng) for _ in range(20_000)], minlength=len(weights))
    np.testing.assert_allclose(counts / 20_000, np.array(weights) / sum(weights), atol=0.015)
    assert not counts[np.array(weights) == 0].any()


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.floats(0, 1e6) | st.just(0.1) | st.just(0.0), min_size=1, max_size=40).filter(any),
    st.floats(0, 1, exclude_max=True),
)
@example([0.1] * 10 + [0.0], np.nextafter(1, 0))
@example([0.1] * 10, np.nextafter(1, 0))
@example([0.7, 0.1, 0.2], np.nextafter(1, 0))
@example([0.0, 1.0, 0.0], 0.0)
def test_items_of_weight_zero_are_never_drawn(weights, number):
    """Also at the bounds, where sums of weights are rounded."""
    item = WeightedDraw(range(len(weights)), weights).draw(ConstantGenerator(number))
    assert weights[item] > 0
    assert type(item) is int


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=60))
def test_largest_random_number_draws_the_last_item(weights):
    draw = WeightedDraw(range(len(weights)), weights)
    assert draw.draw(ConstantGenerator(np.nextafter(1, 0))) == len(weights) - 1


def test_single_item_consumes_no_random_number():
    """Seeds of configs without mixtures must keep their results."""
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert WeightedDraw(["it"], [0.3]).draw(rng) == "it"
    assert rng.bit_generator.state == before


def test_equal_generators_draw_equal_items():
    draw = WeightedDraw("abc", [1, 2, 3])
    one, other = np.random.default_rng(4), np.random.default_rng(4)
    assert [draw.draw(one) for _ in range(50)] == [draw.draw(other) for _ in range(50)]


def test_tiny_and_huge_weights():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny = WeightedDraw("ab", [1e-300, 3e-300])
        huge = WeightedDraw("ab", [1e300, 3e300])
    rng = np.random.default_rng(0)
    for draw in (tiny, huge):
        share = np.mean([draw.draw(rng) == "b" for _ in range(4000)])
        assert share == pytest.approx(0.75, abs=0.04)
