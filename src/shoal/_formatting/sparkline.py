"""Draw a curve as one line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["Sparkline", "draw_line"]

_BLOCKS = "▁▂▃▄▅▆▇█"
_MAX_POINTS = 256


class Sparkline:
    """A curve of values in the order of arrival; adjacent values are averaged to bound its size.

    Example:
        >>> curve = Sparkline()
        >>> for value in range(100):
        ...     curve.add(value)
        >>> curve.draw(8)
        '▁▂▃▄▅▆▇█'
    """

    def __init__(self) -> None:
        self._means: list[float] = []
        self._newest: list[float] = []
        self._values_per_mean = 1

    def add(self, value: float | None) -> None:
        """Append a value. None, NaN and infinities are ignored."""
        if value is None or not math.isfinite(value):
            return
        self._newest.append(value)
        if len(self._newest) == self._values_per_mean:
            self._means.append(_mean(self._newest))
            self._newest = []
        if len(self._means) == 2 * _MAX_POINTS:
            pairs = zip(self._means[::2], self._means[1::2], strict=True)
            self._means = [_mean(pair) for pair in pairs]
            self._values_per_mean *= 2

    def draw(self, width: int) -> str:
        """Return the curve, at most ``width`` characters wide; empty if there are no values."""
        return draw_line([*self._means, *([_mean(self._newest)] if self._newest else [])], width)


def draw_line(values: Sequence[float], width: int) -> str:
    """Draw finite values as a curve, at most ``width`` characters wide.

    >>> draw_line([0.0, 1.0, 4.0], 10)
    '▁▃█'
    """
    if width < 1 or not len(values):
        return ""
    scaled = np.array(values, np.float64)
    scaled /= np.abs(scaled).max() or 1.0  # so that differences do not overflow
    parts = np.array_split(scaled, min(width, len(scaled)))
    heights = np.array([part.mean() for part in parts])
    low, high = heights.min(), heights.max()
    if high == low:
        return _BLOCKS[len(_BLOCKS) // 2] * len(heights)
    levels = (heights - low) / (high - low) * len(_BLOCKS)
    return "".join(_BLOCKS[min(int(level), len(_BLOCKS) - 1)] for level in levels)


def _mean(values: Sequence[float]) -> float:
    return sum(value / len(values) for value in values)
