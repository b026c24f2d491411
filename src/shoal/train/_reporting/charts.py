"""Plots of the training: learning curve, losses and throughput. None if there is no data."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from shoal.train._reporting.axes import (
    format_step_axis,
    marker_for,
    new_figure,
    set_titles,
    set_value_limits,
    shade_phases,
)
from shoal.train._reporting.log_reader import RunRecords
from shoal.train._reporting.phase_spans import phase_spans
from shoal.train._reporting.series import Numbers, finite, moving_mean, thinned
from shoal.train._reporting.style import PALETTE, compact, short

__all__ = ["learning_curve", "losses", "throughput"]

_MAX_POINTS = 4000
_MAX_LOSSES = 24
_LOSSES_PER_ROW = 3
_LOG_SCALE_RATIO = 1000.0


def learning_curve(records: RunRecords) -> Figure | None:
    """Plot episode returns over steps."""
    if records.episodes:
        dots = "episodes"
        steps, returns = finite((row.step, row.reward) for row in records.episodes)
    else:
        dots = "mean returns of recent episodes"
        steps, returns = finite((row.step, row.mean_reward) for row in records.progress)
    if not len(steps):
        return None
    window = _window(steps)
    smooth = moving_mean(returns, window)
    figure, [axes] = new_figure()
    shown = thinned(steps, _MAX_POINTS)
    axes.plot(
        shown,
        thinned(returns, _MAX_POINTS),
        linestyle="",
        marker="o",
        markersize=3,
        markeredgewidth=0,
        color=PALETTE[0],
        alpha=float(np.clip(150 / len(shown), 0.12, 0.6)),
    )
    axes.plot(steps, smooth, color=PALETTE[0], linewidth=2.4, marker=marker_for(steps))
    set_value_limits(axes, np.concatenate([np.percentile(returns, [0.5, 99.5]), smooth]))
    axes.set_ylabel("episode return")
    axes.yaxis.set_major_formatter(FuncFormatter(compact))
    format_step_axis(axes)
    shade_phases(axes, phase_spans(records.progress))
    set_titles(axes, "Learning curve", f"dots: {dots}; line: moving average over {window:,}")
    return figure


def losses(records: RunRecords) -> Figure | None:
    """Plot the metrics of the agent's updates, each in a separate small plot."""
    names = dict.fromkeys(name for row in records.progress for name in row.losses)
    curves = {
        name: finite((row.step, row.losses.get(name)) for row in records.progress) for name in names
    }
    shown = [(name, *curve) for name, curve in curves.items() if len(curve[0])][:_MAX_LOSSES]
    if not shown:
        return None
    columns = min(_LOSSES_PER_ROW, len(shown))
    rows = -(-len(shown) // columns)
    figure, grid = new_figure(rows, columns, height=0.9 + 2.1 * rows)
    for index, (axes, (name, steps, values)) in enumerate(zip(grid, shown, strict=False)):
        _plot_raw_and_smooth(axes, steps, values, PALETTE[index % len(PALETTE)])
        low, high = values.min(), values.max()
        if low > 0 and high > _LOG_SCALE_RATIO * low:
            axes.set_yscale("log")
        else:
            axes.yaxis.set_major_formatter(FuncFormatter(compact))
        axes.set_title(short(name), size=10, parse_math=False)
        format_step_axis(axes, ticks=4)
        axes.tick_params(labelbottom=True)
    for axes in grid[: len(shown)]:
        shade_phases(axes, phase_spans(records.progress), named=False)
    for axes in grid[len(shown) :]:
        axes.remove()
    figure.suptitle("Losses", x=0.01, horizontalalignment="left", weight="bold", size=12)
    return figure


def throughput(records: RunRecords) -> Figure | None:
    """Plot environment steps and gradient steps per second, over steps."""
    step_rates = finite((row.step, row.steps_per_second) for row in records.progress)
    update_rates = finite((row.step, row.updates_per_second) for row in records.progress)
    if not len(step_rates[0]) and not len(update_rates[0]):
        return None
    figure, grid = new_figure(2, height=4.8)
    for axes, (steps, rates), unit, colour in zip(
        grid, (step_rates, update_rates), ("steps/s", "updates/s"), PALETTE, strict=False
    ):
        _plot_raw_and_smooth(axes, steps, rates, colour)
        axes.set_ylabel(unit)
        axes.set_ylim(0, 1.15 * max(rates.max(initial=0.0), 1e-9))
        axes.yaxis.set_major_formatter(FuncFormatter(compact))
        format_step_axis(axes)
    for axes in grid:
        shade_phases(axes, phase_spans(records.progress), named=axes is grid[0])
    set_titles(grid[0], "Throughput", "environment steps and gradient steps per second")
    return figure


def _plot_raw_and_smooth(axes: Axes, steps: Numbers, values: Numbers, colour: str) -> None:
    shown = thinned(steps, _MAX_POINTS)
    axes.plot(shown, thinned(values, _MAX_POINTS), color=colour, alpha=0.3, linewidth=0.8)
    smooth = moving_mean(values, _window(steps))
    axes.plot(steps, smooth, color=colour, marker=marker_for(steps), markersize=3.5)


def _window(steps: Numbers) -> int:
    return 2 * max(len(steps) // 60, min(4, len(steps) // 8)) + 1
