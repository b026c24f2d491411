"""Measurements as text: tables for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill

from benchmarks.figures import Group, Verdict
from shoal._bench.results import SUBJECT, Cell, Report, by_workload, contenders_of, summarize
from shoal._bench.tables import Table, markdown, plain, short_number

__all__ = [
    "as_figures",
    "as_markdown",
    "as_text",
    "failure_notes",
    "figures_table",
    "rate_text",
    "ratio_text",
    "workload_table",
]

_RATE_LEGEND = (
    "Environment steps per second: the median of all rounds, plus or minus half the distance "
    "between the quartiles."
)
_LEGEND = f"{_RATE_LEGEND} x: Shoal's rate divided by this one, the median of the rounds' ratios."
_FIGURES_LEGEND = (
    "Measured: the median of the rounds' values; quartiles: of the same values. A ratio is "
    "computed within each round. Rates below are medians, plus or minus half the distance between "
    "the quartiles, in steps per second unless a figure names another unit."
)

Draw = Callable[[Table], str]


def as_text(report: Report) -> str:
    """Draw a report for the terminal."""
    return f"{_document(report.cells, plain)}\n\n{fill(_LEGEND, 100)}"


def as_markdown(report: Report) -> str:
    """Draw a report as a Markdown document."""
    parts = [_LEGEND, _document(report.cells, markdown)]
    return "\n\n".join([*_head("Benchmarks", report), *parts, *_versions(report)]) + "\n"


def as_figures(
    group: Group,
    report: Report,
    verdicts: Sequence[Verdict],
    draw: Draw,
    write: Callable[[str], str],
) -> list[str]:
    """Draw the parts of a document with the figures and all rates of a group."""
    rates = Table(
        ["cell and contender", "rate"],
        [
            [f"{cell.workload} x {cell.num_envs}, {name}", rate_text(cell, name)]
            for cell in report.cells
            for name in cell.contenders
        ],
    )
    parts = [
        *_head(group.title, report),
        f"`python -m benchmarks figures {group.name}`",
        draw(figures_table(verdicts)),
        write(f"{_FIGURES_LEGEND} {group.legend}"),
        draw(rates) if rates.rows else "",
        _bullets(failure_notes(report.cells)),
        *_versions(report),
    ]
    return [part for part in parts if part]


def figures_table(verdicts: Sequence[Verdict]) -> Table:
    """Lay out figures in a row each, in the columns of ``figures.toml``."""
    header = ["workload", "size", "contender", "baseline", "metric"]
    rows = [
        [
            verdict.figure.workload,
            str(verdict.figure.size),
            verdict.figure.contender,
            verdict.baseline,
            verdict.figure.metric,
            verdict.limit,
            *_value_texts(verdict),
            verdict.outcome,
        ]
        for verdict in verdicts
    ]
    return Table([*header, "required", "measured", "quartiles", ""], rows)


def workload_table(cells: Sequence[Cell]) -> Table:
    """Lay out the cells of one workload: a row per contender, two columns per cell."""
    header = [cells[0].workload]
    for cell in cells:
        header += [f"{cell.num_envs} envs", "x"]
    rows = []
    for name in contenders_of(cells):
        row = [name]
        for cell in cells:
            row += [rate_text(cell, name), "" if name == SUBJECT else ratio_text(cell, name)]
        rows.append(row)
    return Table(header, rows)


def rate_text(cell: Cell, contender: str) -> str:
    """Return a contender's median rate in a cell and its spread."""
    if contender in cell.failures:
        return "failed"
    if contender not in cell.contenders:
        return ""
    summary = summarize(cell.rates[contender])
    return f"{short_number(summary.median)} ±{summary.spread:3.0%}"


def ratio_text(cell: Cell, contender: str) -> str:
    """Return Shoal's rate divided by that of a contender."""
    ratio = cell.ratio(contender)
    return "" if ratio is None else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def failure_notes(cells: Sequence[Cell]) -> list[str]:
    """Return one line for each contender and reason of a failure."""
    places: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for failure in cell.failures.items():
            places.setdefault(failure, []).append(f"{cell.workload} {cell.num_envs}")
    return [f"{name} failed ({', '.join(where)}): {why}" for (name, why), where in places.items()]


def _head(title: str, report: Report) -> list[str]:
    machine, settings = report.machine, report.settings
    where = [machine["cpu"], f"{machine['cores']} cores", machine["system"]]
    where += [machine["device"]] if "device" in machine else []
    return [
        f"# {title}",
        f"{machine['date']}, {', '.join(where)}; "
        f"{settings['rounds']} interleaved rounds of {settings['seconds']:g} s.",
    ]


def _versions(report: Report) -> list[str]:
    lines = [
        f"{name}: " + ", ".join(f"{package} {version}" for package, version in packages.items())
        for name, packages in report.versions.items()
    ]
    return ["## Versions", _bullets(lines)] if lines else []


def _value_texts(verdict: Verdict) -> tuple[str, str]:
    if verdict.values is None or verdict.value is None:
        return "failed", ""
    if len(verdict.values) == 1:
        return _number(verdict.value), ""
    summary = summarize(verdict.values)
    return _number(verdict.value), f"{_number(summary.lower)} to {_number(summary.upper)}"


def _number(value: float) -> str:
    return short_number(value) if value >= 1000 else f"{value:.2f}"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _document(cells: Sequence[Cell], draw: Draw) -> str:
    parts = [draw(workload_table(group)) for group in by_workload(cells).values()]
    notes = failure_notes(cells)
    if notes:
        parts.append(_bullets(notes))
    return "\n\n".join(parts)
