"""Plots of evaluations by opponent and of league ratings by player. None if there is no data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from shoal.train._records import EvaluationRecord, RatingRecord
from shoal.train._reporting.axes import (
    add_legend,
    format_step_axis,
    marker_for,
    new_figure,
    set_titles,
    shade_phases,
)
from shoal.train._reporting.log_reader import RunRecords
from shoal.train._reporting.phase_spans import phase_spans
from shoal.train._reporting.series import finite
from shoal.train._reporting.style import FAINT, INK, PALETTE, colours_of, compact

__all__ = ["evaluations", "ratings", "win_rates"]

Entry = tuple[str, str, dict[str, Any]]
"""A legend entry: its name, its colour and further line properties."""

_NO_OPPONENT = "no opponent"
_LINES = {"main": "-", "snapshot": "-", "exploiter": (0, (5, 1.5)), "scripted": (0, (2, 1.2))}


def win_rates(records: RunRecords) -> Figure | None:
    """Plot the win rate against each opponent, over steps."""
    rows = [row for row in records.evaluations if row.win_rate is not None]
    training = finite((row.step, row.win_rate) for row in records.progress)
    figure, [axes] = new_figure()
    entries = _plot_bands(axes, rows, lambda row: row.win_rate)
    if len(training[0]):
        dotted: dict[str, Any] = {"linestyle": (0, (1, 1.5)), "linewidth": 1.3}
        axes.plot(*training, color=INK, marker=marker_for(training[0]), markersize=2.5, **dotted)
        entries.append(("training", INK, dotted))
    if not entries:
        return None
    axes.set_ylim(-0.02, 1.08)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylabel("win rate")
    _finish(axes, records)
    set_titles(axes, "Win rates", "bands: 95% confidence intervals")
    add_legend(figure, entries)
    return figure


def evaluations(records: RunRecords) -> Figure | None:
    """Plot the mean returns of evaluations without a winner, over steps."""
    rows = [row for row in records.evaluations if row.win_rate is None]
    figure, [axes] = new_figure()
    entries = _plot_bands(axes, rows, lambda row: row.mean_reward)
    if not entries:
        return None
    axes.yaxis.set_major_formatter(FuncFormatter(compact))
    axes.set_ylabel("mean episode return")
    _finish(axes, records)
    set_titles(axes, "Evaluations", "bands: 95% confidence intervals")
    if [name for name, _, _ in entries] != [_NO_OPPONENT]:
        add_legend(figure, entries)
    return figure


def ratings(records: RunRecords) -> Figure | None:
    """Plot the ratings of the league's players, over steps."""
    players: dict[str, list[RatingRecord]] = {}
    for row in records.ratings:
        players.setdefault(row.player, []).append(row)
    ranked = sorted(players, key=lambda name: players[name][-1].rating, reverse=True)
    best, others = ranked[: len(PALETTE)], ranked[len(PALETTE) :]
    figure, [axes] = new_figure()
    entries: list[Entry] = []
    for name in others:
        axes.plot(*_rating_curve(players[name]), color=FAINT, linewidth=0.7, alpha=0.5)
    for name, colour in colours_of(best).items():
        latest = players[name][-1]
        properties: dict[str, Any] = {
            "linestyle": _LINES.get(latest.role, "-"),
            "linewidth": 2.6 if latest.role == "main" else 1.4,
            "zorder": 3 if latest.role == "main" else 2,
        }
        steps, curve = _rating_curve(players[name])
        if len(steps):
            axes.plot(
                steps, curve, color=colour, marker=marker_for(steps), markersize=2.5, **properties
            )
            entries.append((f"{name}  {latest.rating:.1f}", colour, properties))
    if not entries:
        return None
    if others:
        entries.append((f"{len(others)} others", FAINT, {"linewidth": 0.7}))
    axes.yaxis.set_major_formatter(FuncFormatter(compact))
    axes.set_ylabel("rating")
    _finish(axes, records)
    set_titles(axes, "League", "rating: mean minus three deviations; legend: latest rating")
    add_legend(figure, entries)
    return figure


def _rating_curve(rows: Sequence[RatingRecord]) -> Any:
    return finite((row.step, row.rating) for row in rows)


def _plot_bands(
    axes: Axes,
    rows: Sequence[EvaluationRecord],
    value_of: Callable[[EvaluationRecord], float | None],
) -> list[Entry]:
    opponents: dict[str, list[EvaluationRecord]] = {}
    for row in rows:
        opponents.setdefault(row.opponent, []).append(row)
    # The opponents with the most evaluations get a colour each.
    ranked = sorted(opponents, key=lambda name: -len(opponents[name]))
    coloured = colours_of(name for name in opponents if name in ranked[: len(PALETTE)])
    entries: list[Entry] = []
    for name, played in opponents.items():
        steps, values = finite((row.step, value_of(row)) for row in played)
        if not len(steps):
            continue
        if name not in coloured:
            axes.plot(
                steps, values, color=FAINT, linewidth=0.7, alpha=0.5, marker=marker_for(steps)
            )
            continue
        colour = coloured[name]
        _plot_band(axes, played, colour)
        axes.plot(steps, values, color=colour, marker=marker_for(steps), markersize=4)
        entries.append((name or _NO_OPPONENT, colour, {}))
    if len(opponents) > len(coloured):
        entries.append((f"{len(opponents) - len(coloured)} others", FAINT, {"linewidth": 0.7}))
    return entries


def _plot_band(axes: Axes, played: Sequence[EvaluationRecord], colour: str) -> None:
    steps, low = finite((row.step, row.low) for row in played)
    high_steps, high = finite((row.step, row.high) for row in played)
    if len(steps) != len(high_steps):
        return
    if len(steps) == 1:
        axes.vlines(steps, low, high, color=colour, alpha=0.4, linewidth=4)
    else:
        axes.fill_between(steps, low, high, color=colour, alpha=0.14, linewidth=0)


def _finish(axes: Axes, records: RunRecords) -> None:
    format_step_axis(axes)
    shade_phases(axes, phase_spans(records.progress))
