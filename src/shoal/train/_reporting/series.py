"""Prepare values over steps for plots."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["Numbers", "finite", "moving_mean", "thinned"]

Numbers = npt.NDArray[np.float64]

_MAX_VALUE = 1e100


def finite(points: Iterable[tuple[float, float | None]]) -> tuple[Numbers, Numbers]:
    """Return steps and values without values that cannot be drawn: None, nan and huge ones.

    Example:
        >>> steps, values = finite([(1, 0.5), (2, None), (3, float("nan")), (4, 0.25)])
        >>> steps.tolist(), values.tolist()
        ([1.0, 4.0], [0.5, 0.25])
    """
    table = np.array([(step, value) for step, value in points if value is not None], np.float64)
    table = table.reshape(-1, 2)
    table = table[np.abs(table[:, 1]) < _MAX_VALUE]
    return table[:, 0], table[:, 1]


def moving_mean(values: Numbers, window: int) -> Numbers:
    """Return the centred moving average over ``window`` values (an odd number), fewer at the ends.

    Example:
        >>> moving_mean(np.array([0.0, 3.0, 6.0, 9.0]), 3).tolist()
        [1.5, 3.0, 6.0, 7.5]
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    indices = np.arange(len(values))
    start = np.maximum(indices - window // 2, 0)
    end = np.minimum(indices + window // 2 + 1, len(values))
    means: Numbers = (sums[end] - sums[start]) / (end - start)
    return means


def thinned(values: Numbers, at_most: int) -> Numbers:
    """Return at most ``at_most`` of the values, evenly spaced."""
    stride = -(-len(values) // at_most)
    return values[:: max(1, stride)]
