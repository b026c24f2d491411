"""Weighted random choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

__all__ = ["WeightedDraw"]

T = TypeVar("T")


class WeightedDraw(Generic[T]):
    """Random choice of an item with probability proportional to its weight.

    Args:
        items: The items to choose from.
        weights: One non-negative weight per item; at least one must be positive.

    Example:
        >>> WeightedDraw(["never", "always"], [0.0, 2.0]).draw(np.random.default_rng(0))
        'always'
    """

    def __init__(self, items: Sequence[T], weights: Sequence[float]) -> None:
        self._items = list(items)
        sums = np.cumsum(weights)
        self._bounds = sums / sums[-1]  # the last bound is exactly 1

    def draw(self, rng: np.random.Generator) -> T:
        """Return a random item. A single item consumes no random number."""
        if len(self._items) == 1:
            return self._items[0]
        return self._items[int(np.searchsorted(self._bounds, rng.random(), side="right"))]
