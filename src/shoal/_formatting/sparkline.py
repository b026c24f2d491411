"""A curve in a line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["Sparkline", "draw_line"]

_BLOCKS = "▁▂▃▄▅▆▇█"
_KEPT = 256


class Sparkline:
    """Values in the order they came; of many, the means of neighbours are kept.

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
        self._each = 1

    def add(self, value: float | None) -> None:
        """Take in a value; None, and what is not finite, is left out."""
        if value is None or not math.isfinite(value):
            return
        self._newest.append(value)
        if len(self._newest) == self._each:
            self._means.append(_mean(self._newest))
            self._newest = []
        if len(self._means) == 2 * _KEPT:
            pairs = zip(self._means[::2], self._means[1::2], strict=True)
            self._means = [_mean(pair) for pair in pairs]
            self._each *= 2

    def draw(self, width: int) -> str:
        """The curve, at most so many signs wide; without values an empty text."""
        return draw_line([*self._means, *([_mean(self._newest)] if self._newest else [])], width)


def draw_line(values: Sequence[float], width: int) -> str:
    """Finite values as a curve, at most so many signs wide.

    >>> draw_line([0.0, 1.0, 4.0], 10)
    '▁▃█'
    """
    if width < 1 or not len(values):
        return ""
    scaled = np.array(values, np.float64)
    scaled /= np.abs(scaled).max() or 1.0  # so that no difference is infinite
    parts = np.array_split(scaled, min(width, len(scaled)))
    heights = np.array([part.mean() for part in parts])
    low, high = heights.min(), heights.max()
    if high == low:
        return _BLOCKS[len(_BLOCKS) // 2] * len(heights)
    levels = (heights - low) / (high - low) * len(_BLOCKS)
    return "".join(_BLOCKS[min(int(level), len(_BLOCKS) - 1)] for level in levels)


def _mean(values: Sequence[float]) -> float:
    return sum(value / len(values) for value in values)
