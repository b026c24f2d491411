"""Terminal tables of tournament standings and league ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shoal.errors import MissingExtraError
from shoal.train._league.standings import Standings
from shoal.train._records import RatingRecord

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["render_ratings", "render_standings"]

_TEXT_COLUMNS = ("Player", "Role")


def render_standings(standings: Standings) -> Table:
    """Return a table of the standings with a column per opponent."""
    rows = standings.rows()
    table, text = _table(
        "Tournament",
        ["", "Player", "Points", "W-D-L", "Rating", "Mean", "±", *(str(row.place) for row in rows)],
    )
    table.caption = f"1 to {len(rows)}: percentage of points against the player in that place"
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
    """Return a table of the ratings at one step, in the given order."""
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
    """Return an empty table and the class ``Text``, which protects names from rich's markup."""
    try:
        from rich.table import Table
        from rich.text import Text
    except ImportError as error:
        raise MissingExtraError(
            'tables need rich, which is not installed: pip install "shoal[train]"'
        ) from error
    table = Table(title=title)
    for name in columns:
        table.add_column(name, justify="left" if name in _TEXT_COLUMNS else "right", no_wrap=True)
    return table, Text
