"""A curve in a line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["Sparkline"]

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
        values = np.array([*self._means, *([_mean(self._newest)] if self._newest else [])])
        if width < 1 or not len(values):
            return ""
        values /= np.abs(values).max() or 1.0  # so that no difference is infinite
        parts = np.array_split(values, min(width, len(values)))
        heights = np.array([part.mean() for part in parts])
        low, high = heights.min(), heights.max()
        if high == low:
            return _BLOCKS[len(_BLOCKS) // 2] * len(heights)
        levels = (heights - low) / (high - low) * len(_BLOCKS)
        return "".join(_BLOCKS[min(int(level), len(_BLOCKS) - 1)] for level in levels)


def _mean(values: Sequence[float]) -> float:
    return sum(value / len(values) for value in values)
