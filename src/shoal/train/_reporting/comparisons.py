"""Plots of how good the agent is, by opponent and player; None where there is nothing to draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from shoal.train._records import EvaluationRecord, RatingRecord
from shoal.train._reporting.axes import (
    legend,
    marker,
    new_figure,
    over_steps,
    shade_phases,
    subtitle,
)
from shoal.train._reporting.log_reader import RunRecords
from shoal.train._reporting.phase_spans import phase_spans
from shoal.train._reporting.series import finite
from shoal.train._reporting.style import FAINT, INK, PALETTE, colours_of, compact

__all__ = ["evaluations", "ratings", "win_rates"]

Entry = tuple[str, str, dict[str, Any]]
"""A name in a legend, its colour, and what else its line is drawn with."""

_NOBODY = "nobody"
_LINES = {"main": "-", "snapshot": "-", "exploiter": (0, (5, 1.5)), "scripted": (0, (2, 1.2))}


def win_rates(records: RunRecords) -> Figure | None:
    """How many games were won against each opponent, over steps."""
    rows = [row for row in records.evaluations if row.win_rate is not None]
    training = finite((row.step, row.win_rate) for row in records.progress)
    figure, [axes] = new_figure()
    entries = _bands(axes, rows, lambda row: row.win_rate)
    if len(training[0]):
        dotted: dict[str, Any] = {"linestyle": (0, (1, 1.5)), "linewidth": 1.3}
        axes.plot(*training, color=INK, marker=marker(training[0]), markersize=2.5, **dotted)
        entries.append(("while training", INK, dotted))
    if not entries:
        return None
    axes.set_ylim(-0.02, 1.08)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylabel("games won")
    _finish(axes, records)
    subtitle(axes, "Win rates", "bands: 95% intervals")
    legend(figure, entries)
    return figure


def evaluations(records: RunRecords) -> Figure | None:
    """What evaluations returned where nobody can win, over steps."""
    rows = [row for row in records.evaluations if row.win_rate is None]
    figure, [axes] = new_figure()
    entries = _bands(axes, rows, lambda row: row.mean_reward)
    if not entries:
        return None
    axes.yaxis.set_major_formatter(FuncFormatter(compact))
    axes.set_ylabel("mean return of an episode")
    _finish(axes, records)
    subtitle(axes, "Evaluations", "bands: 95% intervals")
    if [name for name, _, _ in entries] != [_NOBODY]:
        legend(figure, entries)
    return figure


def ratings(records: RunRecords) -> Figure | None:
    """How strong the players of the league were held to be, over steps."""
    players: dict[str, list[RatingRecord]] = {}
    for row in records.ratings:
        players.setdefault(row.player, []).append(row)
    ranked = sorted(players, key=lambda name: players[name][-1].rating, reverse=True)
    best, others = ranked[: len(PALETTE)], ranked[len(PALETTE) :]
    figure, [axes] = new_figure()
    entries: list[Entry] = []
    for name in others:
        axes.plot(*_rated(players[name]), color=FAINT, linewidth=0.7, alpha=0.5)
    for name, colour in colours_of(best).items():
        newest = players[name][-1]
        how: dict[str, Any] = {
            "linestyle": _LINES.get(newest.role, "-"),
            "linewidth": 2.6 if newest.role == "main" else 1.4,
            "zorder": 3 if newest.role == "main" else 2,
        }
        steps, rated = _rated(players[name])
        if len(steps):
            axes.plot(steps, rated, color=colour, marker=marker(steps), markersize=2.5, **how)
            entries.append((f"{name}  {newest.rating:.1f}", colour, how))
    if not entries:
        return None
    if others:
        entries.append((f"{len(others)} others", FAINT, {"linewidth": 0.7}))
    axes.yaxis.set_major_formatter(FuncFormatter(compact))
    axes.set_ylabel("rating")
    _finish(axes, records)
    subtitle(axes, "League", "rating: the mean less three deviations; the newest at the right")
    legend(figure, entries)
    return figure


def _rated(rows: Sequence[RatingRecord]) -> Any:
    return finite((row.step, row.rating) for row in rows)


def _bands(
    axes: Axes,
    rows: Sequence[EvaluationRecord],
    value_of: Callable[[EvaluationRecord], float | None],
) -> list[Entry]:
    opponents: dict[str, list[EvaluationRecord]] = {}
    for row in rows:
        opponents.setdefault(row.opponent, []).append(row)
    # The colours go to those who were played most.
    ranked = sorted(opponents, key=lambda name: -len(opponents[name]))
    coloured = colours_of(name for name in opponents if name in ranked[: len(PALETTE)])
    entries: list[Entry] = []
    for name, played in opponents.items():
        steps, values = finite((row.step, value_of(row)) for row in played)
        if not len(steps):
            continue
        if name not in coloured:
            axes.plot(steps, values, color=FAINT, linewidth=0.7, alpha=0.5, marker=marker(steps))
            continue
        colour = coloured[name]
        _band(axes, played, colour)
        axes.plot(steps, values, color=colour, marker=marker(steps), markersize=4)
        entries.append((name or _NOBODY, colour, {}))
    if len(opponents) > len(coloured):
        entries.append((f"{len(opponents) - len(coloured)} others", FAINT, {"linewidth": 0.7}))
    return entries


def _band(axes: Axes, played: Sequence[EvaluationRecord], colour: str) -> None:
    steps, low = finite((row.step, row.low) for row in played)
    others, high = finite((row.step, row.high) for row in played)
    if len(steps) != len(others):
        return
    if len(steps) == 1:
        axes.vlines(steps, low, high, color=colour, alpha=0.4, linewidth=4)
    else:
        axes.fill_between(steps, low, high, color=colour, alpha=0.14, linewidth=0)


def _finish(axes: Axes, records: RunRecords) -> None:
    over_steps(axes)
    shade_phases(axes, phase_spans(records.progress))
