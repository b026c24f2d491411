"""Reward shaping weights, compared with values computed by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.train._config.schema import RewardShaping
from shoal.train._shaping import NOT_SHAPED, shaping_weights

GUIDE = RewardShaping(
    N=100,
    K=50,
    CLOSENESS_START=2.0,
    TOUCH_START=1.0,
    CLOSENESS_FINAL=1.0,
    TOUCH_FINAL=0.0,
    DIRECTION_FINAL=4.0,
)


def shaping(n, k, numbers=(20.0, 10.0, 1.5, 0.0, 5.0)):
    names = (
        "CLOSENESS_START",
        "TOUCH_START",
        "CLOSENESS_FINAL",
        "TOUCH_FINAL",
        "DIRECTION_FINAL",
    )
    return RewardShaping(N=n, K=k, **dict(zip(names, numbers, strict=True)))


@pytest.mark.parametrize(
    ("episode", "closeness", "touch", "direction"),
    [
        (0, 2.0, 1.0, 0.0),
        (1, 2.0, 1.0, 0.0),
        (99, 2.0, 1.0, 0.0),
        (100, 2.0, 1.0, 0.0),
        (101, 1.98, 0.98, 0.08),
        (110, 1.8, 0.8, 0.8),
        (125, 1.5, 0.5, 2.0),
        (149, 1.02, 0.02, 3.92),
        (150, 1.0, 0.0, 4.0),
        (151, 1.0, 0.0, 4.0),
        (10**9, 1.0, 0.0, 4.0),
    ],
)
def test_weights_equal_values_computed_by_hand(episode, closeness, touch, direction):
    assert shaping_weights(GUIDE, episode) == pytest.approx((closeness, touch, direction))


def test_weights_are_zero_without_shaping():
    assert shaping_weights(None, 5) == NOT_SHAPED == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("episode", "final"), [(0, False), (6, False), (7, True), (8, True)])
def test_weights_jump_if_k_is_zero(episode, final):
    expected = (1.5, 0.0, 5.0) if final else (20.0, 10.0, 0.0)
    assert shaping_weights(shaping(7, 0), episode) == pytest.approx(expected)


def test_weights_if_n_is_zero():
    assert shaping_weights(shaping(0, 0), 0) == pytest.approx((1.5, 0.0, 5.0))
    assert shaping_weights(shaping(0, 4), 0) == pytest.approx((20.0, 10.0, 0.0))
    assert shaping_weights(shaping(0, 4), 2) == pytest.approx((10.75, 5.0, 2.5))


numbers = st.tuples(*[st.floats(-100, 100)] * 5)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 1000), numbers)
def test_weights_are_interpolated_linearly(n, k, episode, values):
    close, touch, close_final, touch_final, direction = values
    weights = shaping_weights(shaping(n, k, values), episode)
    if episode < n:
        share = 0.0
    elif episode >= n + k:
        share = 1.0
    else:
        share = (episode - n) / k
    assert weights == pytest.approx(
        (
            (1 - share) * close + share * close_final,
            (1 - share) * touch + share * touch_final,
            share * direction,
        ),
        abs=1e-9,
    )
    assert all(type(weight) is float for weight in weights)
    if share == 1.0:
        assert weights == pytest.approx((close_final, touch_final, direction), abs=1e-12)
