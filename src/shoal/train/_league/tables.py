"""Tables for terminals: the standings of a tournament, and the ratings of a league."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shoal.errors import MissingExtraError
from shoal.train._league.standings import Standings
from shoal.train._records import RatingRecord

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["render_ratings", "render_standings"]

_WORDS = ("Player", "Role")
"""The columns that hold no numbers."""


def render_standings(standings: Standings) -> Table:
    """The players by points, and how each has done against each.

    Args:
        standings: Of a tournament.
    """
    rows = standings.rows()
    table, text = _table(
        "Tournament",
        ["", "Player", "Points", "W-D-L", "Rating", "Mean", "±", *(str(row.place) for row in rows)],
    )
    table.caption = f"1 to {len(rows)}: percentage of the points against the player of that place"
    for row in rows:
        against = [_percentage(standings, row.player, other.player) for other in rows]
        table.add_row(
            str(row.place),
            text(row.player),
            f"{row.points:g}",
            f"{row.wins}-{row.draws}-{row.losses}",
            f"{row.rating:.1f}",
            f"{row.mean:.1f}",
            f"{row.deviation:.1f}",
            *against,
        )
    return table


def render_ratings(records: Sequence[RatingRecord]) -> Table:
    """The players of a league, in the order that is given.

    Args:
        records: Of one step.
    """
    table, text = _table("League", ["", "Player", "Role", "Rating", "Mean", "±", "Games"])
    for place, record in enumerate(records, 1):
        table.add_row(
            str(place),
            text(record.player),
            record.role,
            f"{record.rating:.1f}",
            f"{record.mean:.1f}",
            f"{record.deviation:.1f}",
            str(record.games),
        )
    return table


def _percentage(standings: Standings, player: str, other: str) -> str:
    wins, draws, losses = standings.pair(player, other)
    games = wins + draws + losses
    return f"{100 * (wins + draws / 2) / games:.0f}" if games else "-"


def _table(title: str, columns: Sequence[str]) -> tuple[Table, Any]:
    """A table, and what makes cells of names, in which brackets would be taken for markup."""
    try:
        from rich.table import Table
        from rich.text import Text
    except ImportError as error:
        raise MissingExtraError(
            "tables need rich, which is not installed: pip install 'shoal[train]'"
        ) from error
    table = Table(title=title)
    for name in columns:
        table.add_column(name, justify="left" if name in _WORDS else "right", no_wrap=True)
    return table, Text
