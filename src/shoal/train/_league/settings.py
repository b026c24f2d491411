"""Settings of a league."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from shoal.train._league.matchmaking import Kind

__all__ = ["LeagueSettings"]

Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]


class LeagueSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Growth and matchmaking of a league.

    Only games in the mode ``NORMAL`` count for ratings and win rates.
    """

    snapshot_every: Count = 1000
    """Number of the main player's episodes between snapshots."""
    size: Annotated[int, Meta(ge=2)] = 30
    """Maximum number of frozen players (snapshots and exploiters, without scripted players)."""
    scripted: tuple[Literal["weak", "strong"], ...] = ("weak", "strong")
    """Scripted players that are members from the start."""
    matchmaking: Kind = "hard"
    """Weighting of opponents: ``hard`` prefers opponents to which the main player loses,
    ``variance`` prefers opponents of equal strength, ``even`` weights all equally."""
    latest_share: Share = 0.2
    """Share of the main player's episodes against its current self."""
    half_life: Annotated[float, Meta(gt=0)] | None = 200.0
    """Number of games of a pair after which an older game counts half in matchmaking, because the
    main player keeps learning; null disables discounting."""
    exploiter_share: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """Share of slots in which an exploiter plays against the main player; 0 for no exploiter."""
    exploiter_win_rate: Annotated[float, Meta(gt=0, le=1)] = 0.7
    """Win rate at which the exploiter is done, with draws as half a win."""
    exploiter_window: Count = 100
    """Number of most recent games over which the exploiter's win rate is computed."""
    exploiter_max_episodes: Count = 4000
    """Maximum number of episodes after which the exploiter is done."""

    def __post_init__(self) -> None:
        if len(set(self.scripted)) < len(self.scripted):
            raise ValueError(f"scripted must name each player once, got {list(self.scripted)}")
        if self.exploiter_window > self.exploiter_max_episodes:
            raise ValueError(
                f"exploiter_window must be at most exploiter_max_episodes "
                f"({self.exploiter_max_episodes}), got {self.exploiter_window}"
            )
