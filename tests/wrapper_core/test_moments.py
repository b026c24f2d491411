"""Running statistics equal those of NumPy and the other libraries bit for bit."""

import gymnasium.wrappers.utils
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from stable_baselines3.common.running_mean_std import RunningMeanStd as OfStableBaselines

from shoal import _native
from shoal._wrapper_core.moments import RunningMeanStd, denormalize, normalize
from shoal.testing import assert_identical

SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, max_side=7)
DTYPES = st.sampled_from([np.float32, np.float64, np.float16, np.uint8, np.int64, np.bool_])


def batches(shape, dtype, rows):
    rng = np.random.default_rng(0)
    while True:
        values = rng.normal(3, 50, (rows, *shape))
        yield np.abs(values).astype(dtype) if np.dtype(dtype).kind in "ub" else values.astype(dtype)


@settings(max_examples=150, deadline=None)
@given(shape=SHAPES, dtype=DTYPES, rows=st.integers(1, 300), strided=st.booleans())
def test_equals_stable_baselines3(shape, dtype, rows, strided):
    own, reference = RunningMeanStd(shape=shape), OfStableBaselines(shape=shape)
    for batch, _ in zip(batches(shape, dtype, rows), range(3), strict=False):
        given_batch = np.repeat(batch, 2, axis=0)[::2] if strided else batch
        own.update(given_batch)
        reference.update(batch)
        assert_identical(np.asarray(own.mean), np.asarray(reference.mean))
        assert_identical(np.asarray(own.var), np.asarray(reference.var))
        assert own.count == reference.count
        for values in (batch, batch[0]):
            scaled = (values - reference.mean) / np.sqrt(reference.var + 1e-8)
            expected = np.asarray(np.clip(scaled, -1.5, 1.5), np.float32)
            assert_identical(own.normalize(values, 1e-8, 1.5), expected)
            assert_identical(normalize(values, reference, 1e-8), np.asarray(scaled, np.float32))
            original = values * np.sqrt(reference.var + 1e-8) + reference.mean
            assert_identical(denormalize(values, own, 1e-8), original)


@settings(max_examples=60, deadline=None)
@given(shape=SHAPES, rows=st.integers(1, 40))
def test_equals_gymnasium(shape, rows):
    own = RunningMeanStd(shape=shape, dtype=np.float32)
    reference = gymnasium.wrappers.utils.RunningMeanStd(shape=shape, dtype=np.float32)
    for batch, _ in zip(batches(shape, np.float32, rows), range(3), strict=False):
        own.update(batch)
        reference.update(batch)
        assert_identical(np.asarray(own.mean), np.asarray(reference.mean))
        assert_identical(np.asarray(own.var), np.asarray(reference.var))
        expected = (batch - reference.mean) / np.sqrt(reference.var + 1e-8)
        assert_identical(own.normalize(batch, 1e-8), np.asarray(expected, np.float32))


def test_nan_is_preserved():
    statistics = RunningMeanStd(shape=(3,))
    values = np.array([[np.nan, np.inf, -np.inf]], np.float32)
    scaled = statistics.normalize(values, 1e-8, limit=2.0)
    assert np.isnan(scaled[0, 0])
    assert scaled[0, 1:].tolist() == [2.0, -2.0]


def test_empty_batch_is_ignored():
    statistics = RunningMeanStd(shape=(2,))
    statistics.update(np.zeros((0, 2)))
    assert statistics.count == 1e-4
    assert statistics.normalize(np.zeros((0, 2)), 1e-8).shape == (0, 2)


def test_copies_and_combinations():
    one, other, both = (RunningMeanStd(epsilon=0, shape=(2,)) for _ in range(3))
    first, second = np.random.default_rng(1).normal(size=(2, 10, 2))
    one.update(first)
    copied = one.copy()
    other.update(second)
    one.combine(other)
    both.update(np.concatenate([first, second]))
    np.testing.assert_allclose(one.mean, both.mean)
    np.testing.assert_allclose(one.var, both.var)
    assert (one.count, copied.count) == (20, 10)
    np.testing.assert_allclose(copied.mean, first.mean(axis=0))


def test_native_code_checks_its_arguments():
    mean, var = np.zeros(3), np.ones(3)
    for batch in (np.zeros((2, 4)), np.zeros((2, 3), np.float32), np.zeros((2, 3), int), [1.0]):
        with pytest.raises((ValueError, TypeError)):
            _native.batch_moments(batch, mean, var)
    with pytest.raises(ValueError, match="two elements"):
        _native.batch_moments(np.zeros((3, 1)), np.zeros(1), np.zeros(1))
    out = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="mean"):
        _native.normalize_batch(np.zeros((2, 3)), np.zeros(4), var, 1.0, out)
    with pytest.raises(ValueError, match="out"):
        _native.normalize_batch(np.zeros((2, 3)), mean, var, 1.0, out[:1])
    with pytest.raises(TypeError, match="unsupported combination of dtypes"):
        _native.normalize_batch(np.zeros((2, 3), int), mean, var, 1.0, out)
