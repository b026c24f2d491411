"""Stacks of a ring equal concatenated frames."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import _native
from shoal._wrapper_core.stacking import FrameRing
from shoal.testing import assert_identical

DTYPES = [np.uint8, np.int16, np.float32, np.float64, np.complex128, np.bool_]


@settings(max_examples=120, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple),
    dtype=st.sampled_from(DTYPES),
    num_frames=st.integers(1, 7),
    num_envs=st.integers(1, 4),
    data=st.data(),
)
def test_stacks(shape, dtype, num_frames, num_envs, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    ring = FrameRing(num_frames, num_envs, shape, dtype, axis)
    joined = axis % len(shape)
    history = [[np.zeros(shape, dtype)] * num_frames for _ in range(num_envs)]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    returned = []
    for _ in range(10):
        if rng.random() < 0.3:
            slot = int(rng.integers(num_envs))
            ring.clear(slot)
            history[slot] = [np.zeros(shape, dtype)] * num_frames
        frames = rng.integers(0, 200, (num_envs, *shape)).astype(dtype)
        for slot in range(num_envs):
            expected = np.concatenate([*history[slot][1:], frames[slot]], axis=joined)
            assert_identical(ring.stack_with(slot, frames[slot]), expected)
            history[slot] = [*history[slot][1:], frames[slot]]
        ring.push(frames)
        stacks = ring.stacks()
        expected = [np.concatenate(frames_of_one, axis=joined) for frames_of_one in history]
        assert_identical(stacks, np.array(expected))
        returned.append((stacks, stacks.copy()))
    for stacks, copies in returned:
        assert_identical(stacks, copies)


def test_restore():
    rng = np.random.default_rng(0)
    ring, other = (FrameRing(3, 2, (4,), np.float32, axis=0) for _ in range(2))
    for _ in range(4):
        ring.push(rng.random((2, 4), np.float32))
    other.restore(ring.ordered())
    assert_identical(other.stacks(), ring.stacks())
    frames = rng.random((2, 4), np.float32)
    ring.push(frames)
    other.push(frames)
    assert_identical(other.stacks(), ring.stacks())
    with pytest.raises(ValueError, match="shape"):
        other.restore(ring.ordered()[:2])


def test_replace_newest():
    ring = FrameRing(2, 2, (1,), np.int64, axis=0)
    ring.push(np.array([[1], [2]]))
    ring.push(np.array([[3], [4]]))
    ring.replace_newest(np.array([True, False]), np.array([[9]]))
    assert ring.stacks().tolist() == [[1, 9], [2, 4]]
    assert len(ring) == 2


def test_native_code_checks_its_arguments():
    ring, out = np.zeros((3, 2, 4)), np.zeros((2, 12))
    with pytest.raises(ValueError, match="same size"):
        _native.stack_frames(ring, 0, 4, np.zeros((2, 11)))
    with pytest.raises(ValueError, match="same size"):
        _native.stack_frames(ring[:, ::-1], 0, 4, out)
    with pytest.raises(ValueError, match="same size"):
        _native.stack_frames(ring.astype(object), 0, 4, out.astype(object))
    with pytest.raises(ValueError, match="an index below 3 and a positive chunk, got 3 and 4"):
        _native.stack_frames(ring, 3, 4, out)
    with pytest.raises(ValueError, match="a multiple of the chunk size"):
        _native.stack_frames(ring, 0, 3, out)
