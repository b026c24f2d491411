"""The phases of a run and their statistics, from its progress records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from shoal.train._records import ProgressRecord

__all__ = ["PhaseSpan", "phase_spans"]


class PhaseSpan(NamedTuple):
    """The completed part of a phase."""

    number: int
    """The index of the phase, from 0."""
    name: str
    first_step: int
    last_step: int
    episodes: int
    """The number of episodes that ended in the phase."""
    updates: int
    seconds: float
    mean_reward: float | None
    """The mean return of recent episodes at the end of the phase."""
    win_rate: float | None
    """The win rate of recent episodes at the end of the phase."""


def phase_spans(progress: Sequence[ProgressRecord]) -> list[PhaseSpan]:
    """Return the phases in chronological order."""
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
