"""Plot the results of a run, one panel for each workload."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter

from shoal._bench.results import (
    SUBJECT,
    Cell,
    Report,
    Summary,
    by_workload,
    contenders_of,
    summarize,
)
from shoal._bench.tables import short_number

__all__ = ["save"]

_COLUMNS = 4
_BARS_SHARE = 0.78
"""The fraction of a contender's row that its bars fill."""
_SUBJECT_SHADES = ("#9ad9d2", "#0a5c56")
_OTHER_SHADES = ("#d5dae1", "#596678")
_INK = "#2b3440"
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": "#c3cad3",
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.color": "#e6e9ee",
    "xtick.color": _INK,
    "ytick.color": _INK,
    "ytick.left": False,
}


def save(report: Report, path: Path, label: Callable[[str], str] = str) -> None:
    """Plot environment steps per second on a logarithmic scale, and write the image to ``path``.

    ``label`` maps a contender to its display name.
    """
    workloads = by_workload(report.cells)
    contenders = contenders_of(report.cells)
    columns = min(_COLUMNS, len(workloads))
    rows = math.ceil(len(workloads) / columns)
    with mpl.rc_context(_STYLE):
        figure = Figure((1.8 + 3.4 * columns, 1.4 + rows * (0.7 + 0.4 * len(contenders))))
        figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.12)
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False).flatten()
        for panel, (workload, cells) in zip(panels, workloads.items(), strict=False):
            _draw_panel(panel, workload, cells, contenders, label)
        for spare in panels[len(workloads) :]:
            spare.set_axis_off()
        _draw_frame(figure, report)
        figure.savefig(path, dpi=150)


def _draw_panel(
    panel: Any,
    workload: str,
    cells: Sequence[Cell],
    contenders: list[str],
    label: Callable[[str], str],
) -> None:
    height = _BARS_SHARE / len(cells)
    for number, cell in enumerate(cells):
        shift = (number - (len(cells) - 1) / 2) * height
        for row, contender in enumerate(contenders):
            if contender in cell.rates:
                color = _shade(contender, number, len(cells))
                _draw_bar(panel, row + shift, height, summarize(cell.rates[contender]), color)
            elif contender in cell.failures:
                _annotate(panel, ("axes fraction", "data"), (0, row + shift), "failed")
            elif contender in cell.same_as:
                other = f"same as {label(cell.same_as[contender])}"
                _annotate(panel, ("axes fraction", "data"), (0, row + shift), other)
    medians = [summarize(rates).median for cell in cells for rates in cell.rates.values()]
    if medians:
        # Keep the shortest bar visible, and leave room for the number beside the longest.
        panel.set_xlim(min(medians) / 3, max(medians) * 8)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(EngFormatter(sep=" "))
    panel.minorticks_off()
    panel.set_title(workload)
    panel.set_yticks(range(len(contenders)), map(label, contenders))
    panel.set_ylim(len(contenders) - 0.5, -0.5)
    panel.grid(axis="x")
    panel.set_axisbelow(True)


def _draw_bar(panel: Any, y: float, height: float, summary: Summary, color: Any) -> None:
    whisker = [[summary.median - summary.lower], [summary.upper - summary.median]]
    panel.barh(
        y,
        summary.median,
        height * 0.92,
        color=color,
        xerr=whisker,
        error_kw={"ecolor": _INK, "elinewidth": 0.7},
    )
    _annotate(panel, "data", (summary.upper, y), short_number(summary.median))


def _annotate(panel: Any, coordinates: Any, place: tuple[float, float], text: str) -> None:
    panel.annotate(
        text,
        place,
        xytext=(3, 0),
        xycoords=coordinates,
        textcoords="offset points",
        verticalalignment="center",
        fontsize=6,
    )


def _draw_frame(figure: Figure, report: Report) -> None:
    machine, settings = report.machine, report.settings
    figure.suptitle(
        f"Environment steps per second\n{machine['cpu']}, {machine['cores']} cores, "
        f"{settings['rounds']} rounds",
        x=0.008,
        horizontalalignment="left",
    )
    sizes = list(dict.fromkeys(cell.num_envs for cell in report.cells))
    swatches: list[Any] = [
        tuple(Patch(color=_shade(name, number, len(sizes))) for name in (SUBJECT, ""))
        for number in range(len(sizes))
    ]
    figure.legend(
        swatches,
        [f"{size} environments" for size in sizes],
        handler_map={tuple: HandlerTuple(None)},
        handlelength=3,
        loc="outside lower left",
        ncols=len(sizes),
        frameon=False,
    )


def _shade(contender: str, number: int, count: int) -> Any:
    """Return a color: darker for more environments, with a different hue for Shoal."""
    shades = _SUBJECT_SHADES if contender.startswith(SUBJECT) else _OTHER_SHADES
    return LinearSegmentedColormap.from_list("", shades)(number / max(1, count - 1))
