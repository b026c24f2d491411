"""Plots of the training itself; None where there is nothing to draw."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from shoal.train._reporting.axes import (
    limit,
    marker,
    new_figure,
    over_steps,
    shade_phases,
    subtitle,
)
from shoal.train._reporting.log_reader import RunRecords
from shoal.train._reporting.phase_spans import phase_spans
from shoal.train._reporting.series import Numbers, finite, moving_mean, thinned
from shoal.train._reporting.style import PALETTE, compact, short

__all__ = ["learning_curve", "losses", "throughput"]

_DOTS = 4000
_LOSSES_SHOWN = 24
_LOSSES_IN_A_ROW = 3
_LOGARITHMIC_FROM = 1000.0


def learning_curve(records: RunRecords) -> Figure | None:
    """Returns over steps."""
    if records.episodes:
        what = "episodes"
        steps, returns = finite((row.step, row.reward) for row in records.episodes)
    else:
        what = "means of late episodes"
        steps, returns = finite((row.step, row.mean_reward) for row in records.progress)
    if not len(steps):
        return None
    window = _window(steps)
    smooth = moving_mean(returns, window)
    figure, [axes] = new_figure()
    dots = thinned(steps, _DOTS)
    axes.plot(
        dots,
        thinned(returns, _DOTS),
        linestyle="",
        marker="o",
        markersize=3,
        markeredgewidth=0,
        color=PALETTE[0],
        alpha=float(np.clip(150 / len(dots), 0.12, 0.6)),
    )
    axes.plot(steps, smooth, color=PALETTE[0], linewidth=2.4, marker=marker(steps))
    limit(axes, np.concatenate([np.percentile(returns, [0.5, 99.5]), smooth]))
    axes.set_ylabel("return of an episode")
    axes.yaxis.set_major_formatter(FuncFormatter(compact))
    over_steps(axes)
    shade_phases(axes, phase_spans(records.progress))
    subtitle(axes, "Learning curve", f"dots: {what}; line: moving mean over {window:,}")
    return figure


def losses(records: RunRecords) -> Figure | None:
    """What the agent told of its updates, each in a small plot of its own."""
    names = dict.fromkeys(name for row in records.progress for name in row.losses)
    curves = {
        name: finite((row.step, row.losses.get(name)) for row in records.progress) for name in names
    }
    shown = [(name, *curve) for name, curve in curves.items() if len(curve[0])][:_LOSSES_SHOWN]
    if not shown:
        return None
    columns = min(_LOSSES_IN_A_ROW, len(shown))
    rows = -(-len(shown) // columns)
    figure, grid = new_figure(rows, columns, height=0.9 + 2.1 * rows)
    for index, (axes, (name, steps, values)) in enumerate(zip(grid, shown, strict=False)):
        _faint_and_smooth(axes, steps, values, PALETTE[index % len(PALETTE)])
        low, high = values.min(), values.max()
        if low > 0 and high > _LOGARITHMIC_FROM * low:
            axes.set_yscale("log")
        else:
            axes.yaxis.set_major_formatter(FuncFormatter(compact))
        axes.set_title(short(name), size=10, parse_math=False)
        over_steps(axes, ticks=4)
        axes.tick_params(labelbottom=True)
    for axes in grid[: len(shown)]:
        shade_phases(axes, phase_spans(records.progress), named=False)
    for axes in grid[len(shown) :]:
        axes.remove()
    figure.suptitle("Losses", x=0.01, horizontalalignment="left", weight="bold", size=12)
    return figure


def throughput(records: RunRecords) -> Figure | None:
    """How fast the run went, over steps."""
    stepped = finite((row.step, row.steps_per_second) for row in records.progress)
    updated = finite((row.step, row.updates_per_second) for row in records.progress)
    if not len(stepped[0]) and not len(updated[0]):
        return None
    figure, grid = new_figure(2, height=4.8)
    for axes, (steps, speeds), what, colour in zip(
        grid, (stepped, updated), ("steps/s", "updates/s"), PALETTE, strict=False
    ):
        _faint_and_smooth(axes, steps, speeds, colour)
        axes.set_ylabel(what)
        axes.set_ylim(0, 1.15 * max(speeds.max(initial=0.0), 1e-9))
        axes.yaxis.set_major_formatter(FuncFormatter(compact))
        over_steps(axes)
    for axes in grid:
        shade_phases(axes, phase_spans(records.progress), named=axes is grid[0])
    subtitle(grid[0], "Throughput", "environment steps and gradient steps in a second")
    return figure


def _faint_and_smooth(axes: Axes, steps: Numbers, values: Numbers, colour: str) -> None:
    axes.plot(thinned(steps, _DOTS), thinned(values, _DOTS), color=colour, alpha=0.3, linewidth=0.8)
    smooth = moving_mean(values, _window(steps))
    axes.plot(steps, smooth, color=colour, marker=marker(steps), markersize=3.5)


def _window(steps: Numbers) -> int:
    return 2 * max(len(steps) // 60, min(4, len(steps) // 8)) + 1
