"""Hypothesis strategies for spaces."""

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st

from tests.random_environments import NamedBox, WordSpace

SHAPES = st.sampled_from([(), (1,), (3,), (2, 3), (0,), (2, 1, 2)])
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]


@st.composite
def boxes(draw):
    shape = draw(SHAPES)
    kind = draw(st.sampled_from(["float", "integer", "bool"]))
    box = draw(st.sampled_from([spaces.Box, NamedBox]))
    if kind == "float":
        return box(-2.0, 3.0, shape, draw(st.sampled_from(FLOATS)))
    if kind == "bool":
        return box(0, 1, shape, np.bool_)
    dtype = draw(st.sampled_from(INTEGERS))
    return box(0, 100, shape, dtype)


@st.composite
def multi_discretes(draw):
    shape = draw(st.sampled_from([(1,), (3,), (2, 2)]))
    size = int(np.prod(shape))
    nvec = np.array(draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))).reshape(shape)
    start = np.full(shape, draw(st.integers(-5, 5)))
    dtype = draw(st.sampled_from([np.int64, np.int32, np.int8]))
    return spaces.MultiDiscrete(nvec, start=start, dtype=dtype)


FIXED = st.one_of(
    boxes(),
    multi_discretes(),
    st.builds(spaces.Discrete, st.integers(1, 2000), start=st.integers(-3, 3)),
    st.builds(
        spaces.Discrete, st.integers(1, 9), dtype=st.sampled_from([np.int32, np.int8, np.uint8])
    ),
    st.builds(spaces.MultiBinary, st.sampled_from([1, 4, [2, 3]])),
)
SHAPELESS = st.one_of(
    st.just(spaces.Text(6)),
    st.builds(WordSpace),
    st.builds(spaces.Sequence, boxes(), stack=st.booleans()),
    st.just(spaces.Graph(spaces.Box(-1, 1, (2,)), spaces.Discrete(3))),
    st.just(spaces.Graph(spaces.Discrete(4), None)),
    st.just(spaces.OneOf((spaces.Discrete(3), spaces.Box(-1, 1, (2,))))),
)


def _containers(children):
    names = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True)
    return st.one_of(
        names.flatmap(lambda keys: st.builds(dict, **dict.fromkeys(keys, children))).map(
            spaces.Dict
        ),
        st.lists(children, min_size=1, max_size=3).map(lambda parts: spaces.Tuple(tuple(parts))),
    )


SPACES = st.recursive(FIXED | SHAPELESS, _containers, max_leaves=5)


def travels(space):
    """Whether a space can be sent to another machine."""
    if isinstance(space, WordSpace):
        return False
    if isinstance(space, spaces.Dict):
        return all(map(travels, space.spaces.values()))
    if isinstance(space, spaces.Tuple | spaces.OneOf):
        return all(map(travels, space.spaces))
    return True
