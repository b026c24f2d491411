"""A long history in few points."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["History", "HistoryPoint"]

_MOST = 240


class HistoryPoint(NamedTuple):
    """Some neighbouring values."""

    place: float
    """Of the last of them."""
    mean: float
    lowest: float
    highest: float
    weight: float
    """How many they are."""


class History:
    """Values over a run, however long it is: when there are too many points, neighbours are merged.

    Example:
        >>> curve = History()
        >>> for place in range(1000):
        ...     curve.add(place, mean=place % 2, lowest=0, highest=1)
        >>> len(curve.points) <= 240, curve.points[-1].place
        (True, 999)
    """

    def __init__(self) -> None:
        self.points: list[HistoryPoint] = []
        self._stride = 1
        self._merged = 0  # how many were added to the last point

    def add(
        self,
        place: float,
        mean: float,
        lowest: float | None = None,
        highest: float | None = None,
        weight: float = 1.0,
    ) -> None:
        """Add the mean of so many values, and between what they lie."""
        point = HistoryPoint(
            place,
            mean,
            mean if lowest is None else lowest,
            mean if highest is None else highest,
            weight,
        )
        if self.points and self._merged < self._stride:
            self.points[-1] = _merged(self.points[-1], point)
            self._merged += 1
            return
        if len(self.points) == _MOST:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [_merged(*pair) for pair in pairs]
            self._stride *= 2
        self.points.append(point)
        self._merged = 1


def _merged(one: HistoryPoint, other: HistoryPoint) -> HistoryPoint:
    weight = one.weight + other.weight
    return HistoryPoint(
        other.place,
        (one.mean * one.weight + other.mean * other.weight) / weight,
        min(one.lowest, other.lowest),
        max(one.highest, other.highest),
        weight,
    )
