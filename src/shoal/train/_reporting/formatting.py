"""Values derived from records, and their text on displays and reports."""

from __future__ import annotations

from shoal._formatting import clamp_share, number, percent
from shoal.train._records import EvaluationRecord, ProgressRecord

__all__ = ["interval_text", "remaining_seconds", "score_text", "updates_per_step"]


def remaining_seconds(record: ProgressRecord) -> float | None:
    """Return the estimated remaining time of the run; None if it is not known yet."""
    share = clamp_share(record.share)
    return record.seconds * (1 - share) / share if share > 0 else None


def updates_per_step(record: ProgressRecord) -> float | None:
    """Return the updates per environment step; None while there are no steps."""
    if not record.steps_per_second > 0:
        return None
    return record.updates_per_second / record.steps_per_second


def score_text(record: EvaluationRecord) -> str:
    """Return the win rate of an evaluation, or the mean return if there is no winner."""
    return number(record.mean_reward) if record.win_rate is None else percent(record.win_rate)


def interval_text(record: EvaluationRecord) -> str:
    """Return the confidence interval of an evaluation's win rate or mean return."""
    to_text = number if record.win_rate is None else percent
    return f"{to_text(record.low)} to {to_text(record.high)}"
