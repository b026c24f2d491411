"""Layouts of spaces, and batching of the environments' spaces."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal._spaces import Layout, Leaf, agree, layout_node
from shoal.errors import SpaceMismatchError
from tests.random_environments import WordSpace
from tests.strategies import FIXED, SPACES


def test_box_is_one_leaf():
    (leaf,) = Layout.of(spaces.Box(-1, 1, (2, 3), np.float16)).leaves
    assert (leaf.path, leaf.dtype, leaf.shape) == ("", np.float16, (2, 3))
    assert leaf.low is None


@pytest.mark.parametrize(
    ("space", "low", "high"),
    [
        (spaces.Discrete(5, start=-2), [-2], [2]),
        (spaces.Discrete(255, start=1, dtype=np.uint8), [1], [255]),
        (spaces.MultiDiscrete([2, 3], start=[4, -1]), [4, -1], [5, 1]),
        (spaces.MultiBinary(2), [0, 0], [1, 1]),
    ],
)
def test_integer_spaces_have_bounds(space, low, high):
    (leaf,) = Layout.of(space).leaves
    assert leaf.low.ravel().tolist() == low
    assert leaf.high.ravel().tolist() == high


def test_paths_read_like_python():
    space = spaces.Dict(
        {
            "a": spaces.Tuple((spaces.Discrete(2), spaces.Text(3))),
            "b": spaces.Dict({"it's": spaces.Box(0, 1)}),
            "w": WordSpace(),
        }
    )
    layout = Layout.of(space)
    assert [leaf.path for leaf in layout.leaves] == ["['a'][0]", "['b'][\"it's\"]"]
    assert [leaf.path for leaf in layout.objects] == ["['a'][1]", "['w']"]


@settings(deadline=None)
@given(SPACES)
def test_every_space_has_a_layout(space):
    layout = Layout.of(space)
    assert len(layout.leaves) + len(layout.objects) >= 1


@settings(deadline=None)
@given(FIXED, st.integers(1, 4))
def test_leaves_have_the_dtype_and_shape_of_the_batched_space(space, count):
    (leaf,) = Layout.of(space).leaves
    batched = batch_space(space, count)
    assert (count, *leaf.shape) == batched.shape
    assert leaf.dtype == batched.dtype


def test_register_a_space_type():
    class Angle(gymnasium.Space):
        def __init__(self):
            super().__init__((), np.float64)

    @layout_node.register
    def _angle(space: Angle, path: str) -> Leaf:
        return Leaf(path, "Angle", space.dtype, space.shape)

    (leaf,) = Layout.of(Angle()).leaves
    assert leaf.dtype == np.float64


def test_leaf_with_object_dtype_is_refused():
    with pytest.raises(TypeError, match="object leaf"):
        Layout(spaces.Discrete(2), Leaf("", "things", np.dtype(object), (2,)))


@pytest.mark.parametrize("copy", [True, False])
def test_swapped_byte_order(copy):
    swapped = spaces.Box(-9, 9, (2,), np.dtype(">f4"))

    class Swapped(gymnasium.Env):
        observation_space = action_space = swapped

        def reset(self, *, seed=None, options=None):
            return np.array([1, 2], ">f4"), {}

        def step(self, action):
            return action, 0.0, False, False, {}

    with shoal.make(Swapped, num_envs=2, copy=copy) as envs:
        assert envs.reset()[0].tolist() == [[1, 2], [1, 2]]
        assert envs.step(np.array([[1, 2], [3, 4]], ">f4"))[0].tolist() == [[1, 2], [3, 4]]


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="got int"):
        Layout.of(5)


def test_equal_spaces_are_batched():
    batched = agree([spaces.Box(0, 1, (2,))] * 3, [spaces.Discrete(2)] * 3, "same")
    assert batched.observation == batch_space(spaces.Box(0, 1, (2,)), 3)
    assert batched.action == batch_space(spaces.Discrete(2), 3)


def test_observation_space_mismatch_shows_both_spaces():
    one, other = spaces.Box(0, 1, (2,)), spaces.Box(0, 1, (3,))
    with pytest.raises(SpaceMismatchError, match=r"Slot 1 has Box.*\(3,\).* like Box.*\(2,\)"):
        agree([one, other], [spaces.Discrete(2)] * 2, "different")


def test_action_space_mismatch_shows_both_spaces():
    with pytest.raises(SpaceMismatchError, match=r"Slot 1 has Discrete\(3\), slot 0 has Discrete"):
        agree([spaces.Discrete(2)] * 2, [spaces.Discrete(2), spaces.Discrete(3)], "same")
