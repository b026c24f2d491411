"""Draws of one thing of several, each as likely as its weight says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

__all__ = ["WeightedDraw"]

T = TypeVar("T")


class WeightedDraw(Generic[T]):
    """Draws one of these things.

    Args:
        things: What is drawn from.
        weights: One for each; not all of them 0.

    Example:
        >>> WeightedDraw(["never", "always"], [0.0, 2.0]).draw(np.random.default_rng(0))
        'always'
    """

    def __init__(self, things: Sequence[T], weights: Sequence[float]) -> None:
        self._things = list(things)
        sums = np.cumsum(weights)
        self._bounds = sums / sums[-1]  # the last one is 1, however the others are rounded

    def draw(self, rng: np.random.Generator) -> T:
        """One of them."""
        if len(self._things) == 1:
            return self._things[0]
        return self._things[int(np.searchsorted(self._bounds, rng.random(), side="right"))]
