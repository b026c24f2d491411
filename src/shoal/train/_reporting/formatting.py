"""How the records of a run are told to people: the same way on displays, plots and reports."""

from __future__ import annotations

from shoal._formatting import clamp_share, number, percent
from shoal.train._records import EvaluationRecord, ProgressRecord

__all__ = ["interval", "measured", "remaining_seconds", "updates_per_step"]


def remaining_seconds(record: ProgressRecord) -> float | None:
    """How long the run will go on, if it goes on as it did; None if that cannot be told yet."""
    share = clamp_share(record.share)
    return record.seconds * (1 - share) / share if share > 0 else None


def updates_per_step(record: ProgressRecord) -> float | None:
    """How many updates are made for each step taken; None while nothing is stepped."""
    if not record.steps_per_second > 0:
        return None
    return record.updates_per_second / record.steps_per_second


def measured(record: EvaluationRecord) -> str:
    """What an evaluation has measured: the rate of wins, or where nobody can win the reward."""
    return number(record.mean_reward) if record.win_rate is None else percent(record.win_rate)


def interval(record: EvaluationRecord) -> str:
    """Between what it lies."""
    told = number if record.win_rate is None else percent
    return f"{told(record.low)} to {told(record.high)}"
