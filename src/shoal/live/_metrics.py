"""What a meter has counted, as it is told: rates, distributions and histories."""

from __future__ import annotations

import threading
import time
from collections import deque
from math import isfinite
from statistics import fmean
from typing import Any

from shoal._native import Meter
from shoal.live._history import History

__all__ = ["MetricsHistory"]

_LATE = 100
"""So many episodes tell how it is going at the moment."""

_WINDOW = 30.0
"""Seconds that batch times are told of."""

_SNAPSHOT_EVERY = 2.0

_IDLE_AFTER = 3.0
"""Seconds without a batch after which nothing is stepped any more."""


class MetricsHistory:
    """Taken from a meter by the thread that steps, told to any other.

    Args:
        meter: What counts.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._lock = threading.Lock()
        self._began = self._noted = time.monotonic()
        self._steps = self._batches = self._episodes = 0
        self._rate = 0.0
        self._rates = History()
        self._returns = History()
        self._late: deque[tuple[float, int]] = deque(maxlen=_LATE)
        self._times = [0] * (len(Meter.edges) - 1)
        self._before: deque[tuple[float, list[int]]] = deque([(self._began, self._times)])
        self._longest: deque[tuple[float, float]] = deque()

    def note(self) -> None:
        """Look at the meter. Only the thread that steps may do this."""
        meter, now = self._meter, time.monotonic()
        steps, times, longest = meter.steps, meter.times, meter.take_longest()
        # What is not finite has no place in a mean.
        ended = [episode for episode in meter.take_ended() if isfinite(episode[1])]
        with self._lock:
            passed = now - self._noted
            if steps > self._steps and passed > 0:
                self._rate = (steps - self._steps) / passed
                self._rates.add(now - self._began, self._rate, weight=passed)
            self._noted = now
            self._steps, self._batches, self._episodes = steps, meter.batches, meter.episodes
            self._times = times
            self._note_times(now, times, longest)
            if ended:
                returns = [total for _, total, _ in ended]
                self._late.extend((total, length) for _, total, length in ended[-_LATE:])
                self._returns.add(steps, fmean(returns), min(returns), max(returns), len(returns))

    def _note_times(self, now: float, times: list[int], longest: float) -> None:
        if now - self._before[-1][0] >= _SNAPSHOT_EVERY:
            self._before.append((now, times))
        while len(self._before) > 1 and now - self._before[1][0] >= _WINDOW:
            self._before.popleft()
        self._longest.append((now, longest))
        while now - self._longest[0][0] > _WINDOW:
            self._longest.popleft()

    def told(self) -> dict[str, Any]:
        """Plain data: steps, batches, episodes, rates, times and returns."""
        with self._lock:
            is_idle = time.monotonic() - self._noted > _IDLE_AFTER
            rate = None if not self._batches else 0.0 if is_idle else self._rate
            late = list(self._late)
            return {
                "steps": self._steps,
                "batches": self._batches,
                "episodes": self._episodes,
                "rate": {
                    "now": rate,
                    "history": [[point.place, point.mean] for point in self._rates.points],
                },
                "step_times": self._told_times(),
                "returns": {
                    "mean": fmean(total for total, _ in late) if late else None,
                    "length": fmean(length for _, length in late) if late else None,
                    "history": [
                        [point.place, point.mean, point.lowest, point.highest]
                        for point in self._returns.points
                    ],
                },
            }

    def _told_times(self) -> dict[str, Any]:
        before = self._before[0][1]
        counts = [now - then for now, then in zip(self._times, before, strict=True)]
        filled = [place for place, count in enumerate(counts) if count]
        if not filled:
            empty = dict.fromkeys(("median", "p90", "p99", "longest"))
            return {"edges": [], "counts": [], **empty}
        first, last = filled[0], filled[-1]
        return {
            "edges": Meter.edges[first : last + 2],
            "counts": counts[first : last + 1],
            "median": _quantile(counts, 0.5),
            "p90": _quantile(counts, 0.9),
            "p99": _quantile(counts, 0.99),
            "longest": max(seconds for _, seconds in self._longest),
        }


def _quantile(counts: list[int], share: float) -> float:
    """Where this share of what was counted lies below, between the edges of its bin."""
    wanted, below = share * sum(counts), 0
    edges: list[float] = Meter.edges
    for place, count in enumerate(counts):
        if below + count >= wanted and count:
            part = (wanted - below) / count
            return float(edges[place] * (edges[place + 1] / edges[place]) ** part)
        below += count
    return edges[-1]
