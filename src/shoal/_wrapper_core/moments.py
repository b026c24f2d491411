"""Running mean and variance of a stream of batches."""

from __future__ import annotations

import math
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from shoal import _native

__all__ = ["RunningMeanStd", "Statistics", "denormalize", "normalize"]

Array = npt.NDArray[Any]

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class RunningMeanStd:
    """Elementwise mean, variance and count of all values seen.

    The results equal those of Gymnasium's and Stable-Baselines3's classes of this name bit for bit.

    Args:
        epsilon: The weight of the initial mean 0 and variance 1.
        shape: The shape of one value.
        dtype: The dtype of the statistics.

    Example:
        >>> statistics = RunningMeanStd(shape=(2,))
        >>> statistics.update(np.array([[1.0, 10.0], [3.0, 30.0]]))
        >>> statistics.mean.round(2)
        array([ 2., 20.])
    """

    def __init__(
        self,
        epsilon: float = 1e-4,
        shape: tuple[int, ...] = (),
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        self.mean: Array = np.zeros(shape, dtype)
        self.var: Array = np.ones(shape, dtype)
        self.count: float = epsilon

    def copy(self) -> Self:
        """Return an independent copy."""
        copied = type(self)(shape=self.mean.shape)
        copied.mean, copied.var = self.mean.copy(), self.var.copy()
        copied.count = float(self.count)
        return copied

    def update(self, batch: Array) -> None:
        """Include a batch of values."""
        batch = np.asarray(batch)
        if len(batch):
            self.update_from_moments(*_moments(batch), len(batch))

    def combine(self, other: Statistics) -> None:
        """Include all values of other statistics."""
        self.update_from_moments(other.mean, other.var, other.count)

    def update_from_moments(self, batch_mean: Array, batch_var: Array, batch_count: float) -> None:
        """Include a batch by its mean, variance and size."""
        count = self.count + batch_count
        delta = batch_mean - self.mean
        own_sum, batch_sum = self.var * self.count, batch_var * batch_count
        between = np.square(delta) * self.count * batch_count / count
        self.mean = self.mean + delta * batch_count / count
        self.var = (own_sum + batch_sum + between) / count
        self.count = count

    def normalize(
        self, values: Array, epsilon: float, limit: float = math.inf
    ) -> npt.NDArray[np.float32]:
        """Scale a value or a batch to mean 0 and variance 1, and clip it to ±``limit``."""
        return normalize(values, self, epsilon, limit)


class Statistics(Protocol):
    """Mean and variance, as objects of any library hold them."""

    mean: Array
    var: Array
    count: float


def normalize(
    values: Array, statistics: Statistics, epsilon: float, limit: float = math.inf
) -> npt.NDArray[np.float32]:
    """Scale a value or a batch to mean 0 and variance 1, and clip it to ±``limit``."""
    mean, deviation = statistics.mean, np.sqrt(statistics.var + epsilon)
    if _fits_native(values, mean, deviation) and isinstance(limit, float | int):
        result = np.empty(values.shape, np.float32)
        rows = (-1, *mean.shape)
        _native.normalize_batch(values.reshape(rows), mean, deviation, limit, result.reshape(rows))
        return result
    scaled = np.clip((values - mean) / deviation, np.negative(limit), limit)
    return np.asarray(scaled, np.float32)


def denormalize(values: Array, statistics: Statistics, epsilon: float) -> Array:
    """Invert :func:`normalize`, up to clipping."""
    original: Array = values * np.sqrt(statistics.var + epsilon) + statistics.mean
    return original


def _moments(batch: Array) -> tuple[Array, Array]:
    """Return mean and variance over the rows, bit for bit those of ``np.mean`` and ``np.var``."""
    if batch.dtype not in _FLOATS:
        return np.mean(batch, axis=0), np.var(batch, axis=0)
    if batch.ndim > 1 and batch[0].size > 1 and batch.flags.c_contiguous:
        mean, var = np.empty_like(batch[0]), np.empty_like(batch[0])
        _native.batch_moments(batch, mean, var)
        return mean, var
    mean = np.add.reduce(batch, axis=0) / len(batch)
    distance = batch - mean
    return mean, np.add.reduce(distance * distance, axis=0) / len(batch)


def _fits_native(values: Any, mean: Any, deviation: Any) -> bool:
    """Whether the native code supports these arrays."""
    if not all(isinstance(part, np.ndarray) for part in (values, mean, deviation)):
        return False  # the user may have set the statistics
    if mean.ndim == 0 or not values.flags.c_contiguous or not deviation.flags.c_contiguous:
        return False
    if (mean.shape, mean.dtype) != (deviation.shape, deviation.dtype):
        return False
    if values.size == 0 or values.shape[values.ndim - mean.ndim :] != mean.shape:
        return False
    if not (mean.flags.c_contiguous and mean.dtype in _FLOATS):
        return False
    supported = (*_FLOATS, np.uint8) if mean.dtype == np.float64 else (np.float32,)
    return values.dtype in supported
