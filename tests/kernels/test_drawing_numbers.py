"""Random numbers of kernels equal NumPy's."""

import ctypes

import numpy as np
import pytest

from shoal.kernels import random_below, random_double, random_uniform


def generators(seed):
    """Return NumPy's generator and the equivalent ``shoal_random`` struct."""
    reference = np.random.Generator(np.random.PCG64(seed))
    state = reference.bit_generator.state["state"]
    words = np.array(
        [
            state["state"] % 2**64,
            state["state"] >> 64,
            state["inc"] % 2**64,
            state["inc"] >> 64,
            0,
        ],
        np.uint64,
    )
    return reference, words


@pytest.mark.parametrize("seed", [0, 7, 2**70])
@pytest.mark.parametrize(
    "count", [1, 2, 13, 1000, 3 * 2**30, 2**32 - 1, 2**32, 2**32 + 5, 3 * 2**61, 2**63 - 1]
)
def test_integers_of_any_size(seed, count):
    reference, words = generators(seed)
    drawn = [random_below(words.ctypes.data, count) for _ in range(200)]
    assert drawn == [int(reference.integers(count)) for _ in range(200)]


def test_interleaved_draws_of_different_kinds():
    reference, words = generators(3)
    for _ in range(300):
        assert random_double(words.ctypes.data) == reference.random()
        assert random_below(words.ctypes.data, 6) == reference.integers(6)
        assert random_uniform(words.ctypes.data, -3.0, 0.5) == reference.uniform(-3.0, 0.5)


def test_counts_below_two_consume_no_draw():
    _, words = generators(0)
    before = words.copy()
    assert random_below(words.ctypes.data, 0) == random_below(words.ctypes.data, -4) == 0
    assert np.array_equal(words, before)
    assert ctypes.sizeof(ctypes.c_uint64) * len(words) == 40  # the size of the struct
