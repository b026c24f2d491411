"""Figures and axes as all plots of a run have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from shoal.train._reporting.phase_spans import PhaseSpan
from shoal.train._reporting.series import Numbers
from shoal.train._reporting.style import FAINT, compact, short

__all__ = ["legend", "limit", "marker", "new_figure", "over_steps", "shade_phases", "subtitle"]

_BANDS = ("#edf1f7", "#ffffff")
_NARROW, _NO_ROOM = 0.1, 0.02
_FEW_POINTS = 30


def new_figure(rows: int = 1, columns: int = 1, height: float = 4.4) -> tuple[Figure, list[Axes]]:
    """A figure, and its axes row by row; they share the axis of environment steps below."""
    figure = Figure(figsize=(9.5, height), layout="constrained")
    figure.supxlabel("environment steps", size="medium")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True)
    return figure, list(axes.flat)


def subtitle(axes: Axes, title: str, text: str) -> None:
    """Write a title, and below it in small letters what there is to see."""
    axes.set_title(title, pad=22)
    axes.annotate(
        text,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 8),
        textcoords="offset points",
        color=FAINT,
        size=8.5,
    )


def over_steps(axes: Axes, ticks: int = 8) -> None:
    """Make the axis below one of environment steps."""
    axes.margins(x=0.015)
    axes.xaxis.set_major_formatter(FuncFormatter(compact))
    axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))


def limit(axes: Axes, values: Numbers) -> None:
    """Make the axis at the side just long enough for these values, and labels above them."""
    low, high = float(values.min()), float(values.max())
    room = (high - low) or abs(high) or 1.0
    axes.set_ylim(low - 0.06 * room, high + 0.12 * room)


def marker(values: Numbers) -> str:
    """What marks the points of a line: nothing, if there are many."""
    return "o" if len(values) <= _FEW_POINTS else ""


def shade_phases(axes: Axes, spans: Sequence[PhaseSpan], *, named: bool = True) -> None:
    """Shade every other phase, and write their names at the top; a single one needs neither.

    The axis below keeps the length that it has then, so everything must have been drawn.
    """
    if len(spans) < 2:
        return
    low, high = axes.get_xlim()
    for index, span in enumerate(spans):
        start, end = max(low, span.first_step), min(high, span.last_step)
        if not start < end:
            continue
        axes.axvspan(start, end, color=_BANDS[index % 2], zorder=0, linewidth=0)
        share = (end - start) / (high - low)
        if named and share > _NO_ROOM:
            axes.text(
                (start + end) / 2,
                0.985,
                short(span.name),
                transform=axes.get_xaxis_transform(),
                horizontalalignment="center",
                verticalalignment="top",
                rotation=90 if share < _NARROW else 0,
                size=8,
                color=FAINT,
                clip_on=True,
                parse_math=False,
            )
    axes.set_xlim(low, high)


def legend(figure: Figure, entries: Iterable[tuple[str, str, dict[str, Any]]]) -> None:
    """Put a legend beside the axes.

    Args:
        figure: Which gets it.
        entries: The name, the colour, and what else the line is drawn with.
    """
    named = list(entries)
    drawn = figure.legend(
        [Line2D([], [], color=colour, **how) for _, colour, how in named],
        # With a space before it, since a name that begins with an underscore would be left out.
        [f" {short(name)}" for name, _, _ in named],
        loc="outside right upper",
        handlelength=1.6,
    )
    for text in drawn.get_texts():
        text.set_parse_math(False)
