"""Rates, distributions and histories, computed from the counts of a meter."""

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

_RECENT_EPISODES = 100
"""The number of episodes in the means of returns and lengths."""

_WINDOW = 30.0
"""Seconds covered by the distribution of batch times."""

_SNAPSHOT_INTERVAL = 2.0

_IDLE_AFTER = 3.0
"""Seconds without a batch after which the rate is reported as 0."""


class MetricsHistory:
    """Statistics that the stepping thread updates and any other thread may read.

    Args:
        meter: Counts steps, episodes and batch times.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._lock = threading.Lock()
        self._start = self._updated = time.monotonic()
        self._steps = self._batches = self._episodes = 0
        self._rate = 0.0
        self._rates = History()
        self._returns = History()
        self._recent: deque[tuple[float, int]] = deque(maxlen=_RECENT_EPISODES)
        self._times = [0] * (len(Meter.edges) - 1)
        self._snapshots: deque[tuple[float, list[int]]] = deque([(self._start, self._times)])
        self._longest: deque[tuple[float, float]] = deque()

    def update(self) -> None:
        """Read the meter. Must be called by the stepping thread."""
        meter, now = self._meter, time.monotonic()
        steps, times, longest = meter.steps, meter.times, meter.take_longest()
        # Episodes whose return is not finite would spoil the means.
        ended = [episode for episode in meter.take_ended() if isfinite(episode[1])]
        with self._lock:
            elapsed = now - self._updated
            if steps > self._steps and elapsed > 0:
                self._rate = (steps - self._steps) / elapsed
                self._rates.add(now - self._start, self._rate, weight=elapsed)
            self._updated = now
            self._steps, self._batches, self._episodes = steps, meter.batches, meter.episodes
            self._times = times
            self._update_times(now, times, longest)
            if ended:
                returns = [total for _, total, _ in ended]
                self._recent.extend(
                    (total, length) for _, total, length in ended[-_RECENT_EPISODES:]
                )
                self._returns.add(steps, fmean(returns), min(returns), max(returns), len(returns))

    def _update_times(self, now: float, times: list[int], longest: float) -> None:
        if now - self._snapshots[-1][0] >= _SNAPSHOT_INTERVAL:
            self._snapshots.append((now, times))
        while len(self._snapshots) > 1 and now - self._snapshots[1][0] >= _WINDOW:
            self._snapshots.popleft()
        self._longest.append((now, longest))
        while now - self._longest[0][0] > _WINDOW:
            self._longest.popleft()

    def as_dict(self) -> dict[str, Any]:
        """Return steps, batches, episodes, rates, batch times and returns as plain data."""
        with self._lock:
            is_idle = time.monotonic() - self._updated > _IDLE_AFTER
            rate = None if not self._batches else 0.0 if is_idle else self._rate
            recent = list(self._recent)
            return {
                "steps": self._steps,
                "batches": self._batches,
                "episodes": self._episodes,
                "rate": {
                    "now": rate,
                    "history": [[point.x, point.mean] for point in self._rates.points],
                },
                "step_times": self._times_as_dict(),
                "returns": {
                    "mean": fmean(total for total, _ in recent) if recent else None,
                    "length": fmean(length for _, length in recent) if recent else None,
                    "history": [
                        [point.x, point.mean, point.lowest, point.highest]
                        for point in self._returns.points
                    ],
                },
            }

    def _times_as_dict(self) -> dict[str, Any]:
        before = self._snapshots[0][1]
        counts = [now - then for now, then in zip(self._times, before, strict=True)]
        filled = [index for index, count in enumerate(counts) if count]
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
    """Return the quantile of a histogram, interpolated within its bin on a logarithmic scale."""
    rank, below = share * sum(counts), 0
    edges: list[float] = Meter.edges
    for index, count in enumerate(counts):
        if below + count >= rank and count:
            part = (rank - below) / count
            return float(edges[index] * (edges[index + 1] / edges[index]) ** part)
        below += count
    return edges[-1]
