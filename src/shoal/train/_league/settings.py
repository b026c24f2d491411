"""What can be said of a league."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from shoal.train._league.matchmaking import Kind

__all__ = ["LeagueSettings"]

Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]


class LeagueSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a league grows, and how opponents are drawn from it.

    Only games in the mode ``NORMAL`` tell how strong somebody is, and are counted.
    """

    snapshot_every: Count = 1000
    """Episodes of the main from one snapshot of it to the next."""
    size: Annotated[int, Meta(ge=2)] = 30
    """How many frozen players there may be: snapshots and exploiters, scripted players not."""
    scripted: tuple[Literal["weak", "strong"], ...] = ("weak", "strong")
    """The scripted players that are in the league from its beginning."""
    matchmaking: Kind = "hard"
    """How opponents are drawn: ``hard`` prefers those the main loses to, ``variance`` those that
    are as good as it, ``even`` nobody."""
    latest_share: Share = 0.2
    """The share of the main's episodes that it plays against itself as it is."""
    half_life: Annotated[float, Meta(gt=0)] | None = 200.0
    """After so many games of a pair an older one counts half when opponents are drawn; with null
    all count alike. The main goes on learning, so old games tell less of it."""
    exploiter_share: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """The share of slots in which an exploiter plays against the main; 0 for no exploiter."""
    exploiter_win_rate: Annotated[float, Meta(gt=0, le=1)] = 0.7
    """The exploiter is done when it wins at least so many of its games; a draw is half a win."""
    exploiter_window: Count = 100
    """Over how many of its last games that is counted."""
    exploiter_max_episodes: Count = 4000
    """The exploiter is done after so many games in any case."""

    def __post_init__(self) -> None:
        if len(set(self.scripted)) < len(self.scripted):
            raise ValueError(f"scripted must name each player once, got {list(self.scripted)}")
        if self.exploiter_window > self.exploiter_max_episodes:
            raise ValueError(
                f"exploiter_window must be at most exploiter_max_episodes "
                f"({self.exploiter_max_episodes}), got {self.exploiter_window}"
            )
