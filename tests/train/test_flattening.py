"""Observations as rows of numbers, compared with Gymnasium's flattening."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import concatenate, create_empty_array
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._tasks.flattening import make_flatten

shapes = st.sampled_from([(), (1,), (3,), (2, 3), (2, 1, 2), (0,)])
dtypes = st.sampled_from([np.float32, np.float64, np.uint8, np.int32, np.int64])


@st.composite
def boxes(draw):
    dtype, shape = draw(dtypes), draw(shapes)
    return spaces.Box(0, 100, shape, dtype)


simple = st.one_of(
    boxes(),
    st.builds(spaces.Discrete, st.integers(1, 6), start=st.integers(-3, 3)),
    st.builds(spaces.MultiBinary, st.sampled_from([1, 4, (2, 3)])),
    st.builds(
        spaces.MultiDiscrete,
        st.sampled_from([[3], [2, 5, 1], [[2, 3], [4, 1]]]).map(np.array),
    ),
)
any_space = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("zyxab"), inner, min_size=1, max_size=3).map(spaces.Dict),
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
    ),
    max_leaves=5,
)


def batch_of(space, samples):
    return concatenate(space, samples, create_empty_array(space, len(samples)))


@settings(max_examples=150, deadline=None)
@given(any_space, st.integers(1, 4), st.integers(0, 1000))
def test_rows_equal_gymnasiums(space, count, seed):
    space.seed(seed)
    samples = [space.sample() for _ in range(count)]
    size, flatten = make_flatten(space)
    rows = flatten(batch_of(space, samples))
    assert rows.dtype == np.float32
    assert rows.shape == (count, size)
    for row, sample in zip(rows, samples, strict=True):
        assert np.array_equal(row, spaces.flatten(space, sample).astype(np.float32))


def test_discrete_spaces_with_start():
    size, flatten = make_flatten(spaces.Discrete(3, start=-1))
    assert size == 3
    assert flatten(np.array([-1, 1, 0])).tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    size, flatten = make_flatten(spaces.MultiDiscrete([2, 3], start=[5, -2]))
    assert size == 5
    assert flatten(np.array([[6, -2]])).tolist() == [[0, 1, 1, 0, 0]]


def test_input_batch_is_not_modified():
    for space in (spaces.Box(0, 1, (2, 2)), spaces.MultiBinary(4), spaces.Discrete(4)):
        batch = batch_of(space, [space.sample() for _ in range(3)])
        before = batch.copy()
        assert make_flatten(space)[1](batch).shape == (3, 4)
        assert np.array_equal(batch, before)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(3),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(spaces.Box(0, 1, (2,)), None),
        spaces.Dict(a=spaces.Discrete(2), b=spaces.Text(3)),
        spaces.Tuple([spaces.Text(3)]),
    ],
)
def test_unsupported_space_raises(space):
    with pytest.raises(ValueError, match="wrap the environment"):
        make_flatten(space)
