"""What a run tells of itself: the rows of its logs, of which plots and reports are made."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EpisodeRecord", "EvaluationRecord", "ProgressRecord", "RatingRecord"]


class EpisodeRecord(NamedTuple):
    """An episode of training that has ended."""

    step: int
    """Environment steps of the run when it ended, over all slots."""
    episode: int
    """Its number in the run, from 1."""
    phase: str
    slot: int
    length: int
    reward: float
    """The sum of what the environment gave."""
    shaped_reward: float
    """The sum of what the agent was given: shaped and scaled."""
    opponent: str
    """Who it was played against; empty where there is nobody."""
    winner: int | None
    """1 for the agent, -1 for the opponent, 0 for nobody; None where nobody can win."""


class ProgressRecord(NamedTuple):
    """How far a run is, told once in a while."""

    step: int
    episodes: int
    updates: int
    """Gradient steps so far."""
    seconds: float
    """Of training so far, those before the run was resumed included."""
    phase: str
    phase_number: int
    """From 0."""
    phase_share: float
    """Which part of the phase is done, from 0 to 1."""
    share: float
    """Which part of the whole run is done, from 0 to 1."""
    steps_per_second: float
    """Since the record before, as are the following."""
    updates_per_second: float
    mean_reward: float | None
    """Of the episodes that ended lately; None where none has."""
    win_rate: float | None
    """Of the same episodes; None where nobody can win."""
    losses: dict[str, float]
    """What the agent tells of its updates: losses, temperatures, and the like."""


class EvaluationRecord(NamedTuple):
    """What came of games, or episodes, that were played to see how good the agent is."""

    step: int
    opponent: str
    """Who it was played against; empty where there is nobody."""
    games: int
    wins: int | None
    """None, as are the following ones, where nobody can win."""
    draws: int | None
    losses: int | None
    win_rate: float | None
    low: float
    """Between this and the next lies what was measured (the rate of wins, or where nobody can win
    the mean reward) with a probability of 95%."""
    high: float
    mean_reward: float
    mean_length: float


class RatingRecord(NamedTuple):
    """How strong a player of the league is held to be at a step."""

    step: int
    player: str
    role: str
    """``main``, ``snapshot``, ``exploiter`` or ``scripted``."""
    rating: float
    """A lower bound of its strength: the mean less three deviations."""
    mean: float
    deviation: float
    games: int
