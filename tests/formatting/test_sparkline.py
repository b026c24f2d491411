"""Sparklines show the shape of any sequence of values."""

from hypothesis import given
from hypothesis import strategies as st

from shoal._formatting import Sparkline


def drawn(values, width):
    curve = Sparkline()
    for value in values:
        curve.add(value)
    return curve.draw(width)


@given(st.lists(st.none() | st.floats(), max_size=40), st.integers(-3, 60))
def test_any_values_can_be_drawn(values, width):
    assert len(drawn(values, width)) <= max(0, width)


def test_shapes():
    assert drawn([], 10) == ""
    assert drawn([None, float("nan")], 10) == ""
    assert drawn([3.0] * 5, 10) == "▅▅▅▅▅"
    assert drawn([0, 1], 10) == "▁█"
    assert drawn([-1e308, 1e308], 10) == "▁█"
    assert drawn([5e-324, 0], 2) == "█▁"


def test_many_values_keep_the_shape():
    for length in (100, 511, 512, 513, 5000, 100_001):
        assert drawn(range(length), 8) == "▁▂▃▄▅▆▇█"
