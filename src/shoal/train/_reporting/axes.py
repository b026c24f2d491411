"""Figures and axes in the common style of all plots of a run."""

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

__all__ = [
    "add_legend",
    "format_step_axis",
    "marker_for",
    "new_figure",
    "set_titles",
    "set_value_limits",
    "shade_phases",
]

_BANDS = ("#edf1f7", "#ffffff")
_ROTATE_BELOW, _OMIT_BELOW = 0.1, 0.02
"""Widths of phases, relative to the axis, below which their name is rotated or omitted."""
_MAX_MARKERS = 30


def new_figure(rows: int = 1, columns: int = 1, height: float = 4.4) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, row by row; they share the x axis of environment steps."""
    figure = Figure(figsize=(9.5, height), layout="constrained")
    figure.supxlabel("environment steps", size="medium")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True)
    return figure, list(axes.flat)


def set_titles(axes: Axes, title: str, subtitle: str) -> None:
    """Set the title, and a subtitle in small letters below it."""
    axes.set_title(title, pad=22)
    axes.annotate(
        subtitle,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 8),
        textcoords="offset points",
        color=FAINT,
        size=8.5,
    )


def format_step_axis(axes: Axes, ticks: int = 8) -> None:
    """Format the x axis for environment steps."""
    axes.margins(x=0.015)
    axes.xaxis.set_major_formatter(FuncFormatter(compact))
    axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))


def set_value_limits(axes: Axes, values: Numbers) -> None:
    """Fit the y axis to these values, with space for the names of phases above."""
    low, high = float(values.min()), float(values.max())
    span = (high - low) or abs(high) or 1.0
    axes.set_ylim(low - 0.06 * span, high + 0.12 * span)


def marker_for(values: Numbers) -> str:
    """Return the marker of a line's points; none if there are many points."""
    return "o" if len(values) <= _MAX_MARKERS else ""


def shade_phases(axes: Axes, spans: Sequence[PhaseSpan], *, named: bool = True) -> None:
    """Shade every other phase and write the names of phases at the top, if there are several.

    Call this after drawing all data: it fixes the limits of the x axis.
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
        if named and share > _OMIT_BELOW:
            axes.text(
                (start + end) / 2,
                0.985,
                short(span.name),
                transform=axes.get_xaxis_transform(),
                horizontalalignment="center",
                verticalalignment="top",
                rotation=90 if share < _ROTATE_BELOW else 0,
                size=8,
                color=FAINT,
                clip_on=True,
                parse_math=False,
            )
    axes.set_xlim(low, high)


def add_legend(figure: Figure, entries: Iterable[tuple[str, str, dict[str, Any]]]) -> None:
    """Add a legend beside the axes.

    Args:
        figure: The figure of the axes.
        entries: The name, the colour and further line properties of each entry.
    """
    lines = list(entries)
    legend = figure.legend(
        [Line2D([], [], color=colour, **properties) for _, colour, properties in lines],
        # Matplotlib omits names with a leading underscore; the space prevents this.
        [f" {short(name)}" for name, _, _ in lines],
        loc="outside right upper",
        handlelength=1.6,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
