"""A history of any length in a bounded number of points."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["History", "HistoryPoint"]

_MAX_POINTS = 240


class HistoryPoint(NamedTuple):
    """Statistics of adjacent values."""

    x: float
    """The x coordinate of the last value."""
    mean: float
    lowest: float
    highest: float
    weight: float
    """The total weight of the values."""


class History:
    """Values over a run. When there are too many points, adjacent points are merged.

    Example:
        >>> curve = History()
        >>> for x in range(1000):
        ...     curve.add(x, mean=x % 2, lowest=0, highest=1)
        >>> len(curve.points) <= 240, curve.points[-1].x
        (True, 999)
    """

    def __init__(self) -> None:
        self.points: list[HistoryPoint] = []
        self._stride = 1
        self._merged = 0  # number of values in the last point

    def add(
        self,
        x: float,
        mean: float,
        lowest: float | None = None,
        highest: float | None = None,
        weight: float = 1.0,
    ) -> None:
        """Append the mean, the range and the weight of some values."""
        point = HistoryPoint(
            x,
            mean,
            mean if lowest is None else lowest,
            mean if highest is None else highest,
            weight,
        )
        if self.points and self._merged < self._stride:
            self.points[-1] = _merged(self.points[-1], point)
            self._merged += 1
            return
        if len(self.points) == _MAX_POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [_merged(*pair) for pair in pairs]
            self._stride *= 2
        self.points.append(point)
        self._merged = 1


def _merged(one: HistoryPoint, other: HistoryPoint) -> HistoryPoint:
    weight = one.weight + other.weight
    return HistoryPoint(
        other.x,
        (one.mean * one.weight + other.mean * other.weight) / weight,
        min(one.lowest, other.lowest),
        max(one.highest, other.highest),
        weight,
    )
