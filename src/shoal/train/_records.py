"""Records that a run reports: rows of its logs and the input of plots and reports."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EpisodeRecord", "EvaluationRecord", "ProgressRecord", "RatingRecord"]


class EpisodeRecord(NamedTuple):
    """A finished training episode."""

    step: int
    """Environment steps of the run, over all slots, when the episode ended."""
    episode: int
    """Number of the episode in the run, from 1."""
    phase: str
    slot: int
    length: int
    reward: float
    """Sum of the environment's rewards."""
    shaped_reward: float
    """Sum of the agent's rewards, after shaping and scaling."""
    opponent: str
    """Name of the opponent; empty in environments without opponents."""
    winner: int | None
    """1 for the agent, -1 for the opponent, 0 for a draw; None in environments without a winner."""


class ProgressRecord(NamedTuple):
    """Progress of a run, reported periodically."""

    step: int
    episodes: int
    updates: int
    """Number of gradient steps."""
    seconds: float
    """Training time, including the time before the run was resumed."""
    phase: str
    phase_number: int
    """Index of the phase, from 0."""
    phase_share: float
    """Completed fraction of the phase, from 0 to 1."""
    share: float
    """Completed fraction of the run, from 0 to 1."""
    steps_per_second: float
    """Since the previous record, like ``updates_per_second``."""
    updates_per_second: float
    mean_reward: float | None
    """Mean return of the most recent episodes; None if no episode has ended."""
    win_rate: float | None
    """Win rate in the same episodes; None in environments without a winner."""
    losses: dict[str, float]
    """Metrics of the agent's updates, such as losses and temperatures."""


class EvaluationRecord(NamedTuple):
    """Result of an evaluation."""

    step: int
    opponent: str
    """Name of the opponent; empty in environments without opponents."""
    games: int
    wins: int | None
    """None, like ``draws``, ``losses`` and ``win_rate``, in environments without a winner."""
    draws: int | None
    losses: int | None
    win_rate: float | None
    low: float
    """Lower bound of the 95% confidence interval of the win rate, or of the mean reward in
    environments without a winner."""
    high: float
    mean_reward: float
    mean_length: float


class RatingRecord(NamedTuple):
    """Rating of a league player at a step."""

    step: int
    player: str
    role: str
    """``main``, ``snapshot``, ``exploiter`` or ``scripted``."""
    rating: float
    """Conservative estimate of the strength: mean minus three standard deviations."""
    mean: float
    deviation: float
    games: int
