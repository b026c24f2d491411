"""The phases that a run has gone through, as its progress tells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from shoal.train._records import ProgressRecord

__all__ = ["PhaseSpan", "phase_spans"]


class PhaseSpan(NamedTuple):
    """A phase, or as much of it as there was."""

    number: int
    """From 0."""
    name: str
    first_step: int
    last_step: int
    episodes: int
    """That ended in it."""
    updates: int
    seconds: float
    mean_reward: float | None
    """At its end."""
    win_rate: float | None
    """At its end."""


def phase_spans(progress: Sequence[ProgressRecord]) -> list[PhaseSpan]:
    """The phases in the order in which they came."""
    spans: list[PhaseSpan] = []
    step, episodes, updates, seconds = 0, 0, 0, 0.0
    for (number, name), records in groupby(progress, lambda row: (row.phase_number, row.phase)):
        *_, last = records
        spans.append(
            PhaseSpan(
                number=number,
                name=name,
                first_step=step,
                last_step=last.step,
                episodes=last.episodes - episodes,
                updates=last.updates - updates,
                seconds=last.seconds - seconds,
                mean_reward=last.mean_reward,
                win_rate=last.win_rate,
            )
        )
        step, episodes, updates, seconds = last.step, last.episodes, last.updates, last.seconds
    return spans
