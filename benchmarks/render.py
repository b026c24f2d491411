"""A run's results as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill

from shoal._bench.results import SUBJECT, Cell, Report, by_workload, contenders_of, summarize
from shoal._bench.tables import Table, markdown, plain, short_number

__all__ = [
    "RATE_LEGEND",
    "as_markdown",
    "as_text",
    "bullets",
    "failure_notes",
    "markdown_document",
    "rate_text",
    "ratio_text",
    "workload_table",
]

RATE_LEGEND = (
    "Environment steps per second: the median over all rounds, plus or minus half the distance "
    "between the quartiles."
)
_LEGEND = (
    f"{RATE_LEGEND} x: how many times faster Shoal is, the median over rounds of the ratio within "
    "a round."
)


def as_text(report: Report) -> str:
    """Write a report for the terminal."""
    return f"{_document(report.cells, plain)}\n\n{fill(_LEGEND, 100)}"


def as_markdown(report: Report) -> str:
    """Write a report as a Markdown document."""
    return markdown_document("Benchmarks", report, _LEGEND, _document(report.cells, markdown))


def markdown_document(title: str, report: Report, *parts: str) -> str:
    """Put a document's parts between what every one begins and ends with: machine and versions."""
    machine, settings = report.machine, report.settings
    versions = [
        f"{name}: " + ", ".join(f"{package} {version}" for package, version in packages.items())
        for name, packages in report.versions.items()
    ]
    return "\n\n".join(
        [
            f"# {title}",
            f"{machine['date']}, {machine['cpu']}, {machine['cores']} cores, {machine['system']}; "
            f"{settings['rounds']} interleaved rounds of {settings['seconds']:g} s.",
            *parts,
            "## Versions",
            bullets(versions) + "\n",
        ]
    )


def workload_table(cells: Sequence[Cell]) -> Table:
    """Lay out the cells of one workload: a row for each contender, two columns for each cell."""
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
    """Write a contender's rate in a cell, and how much it varied."""
    if contender in cell.failures:
        return "failed"
    if contender not in cell.contenders:
        return ""
    summary = summarize(cell.rates[contender])
    return f"{short_number(summary.median)} ±{summary.spread:3.0%}"


def ratio_text(cell: Cell, contender: str) -> str:
    """Write how many times faster than this contender Shoal is in a cell."""
    ratio = cell.ratio(contender)
    return "" if ratio is None else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def failure_notes(cells: Sequence[Cell]) -> list[str]:
    """Say which contenders failed and why, in one line for each reason."""
    places: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for failure in cell.failures.items():
            places.setdefault(failure, []).append(f"{cell.workload} {cell.num_envs}")
    return [f"{name} failed ({', '.join(where)}): {why}" for (name, why), where in places.items()]


def bullets(lines: Sequence[str]) -> str:
    """Write lines as a list."""
    return "\n".join(f"- {line}" for line in lines)


def _document(cells: Sequence[Cell], draw: Callable[[Table], str]) -> str:
    parts = [draw(workload_table(group)) for group in by_workload(cells).values()]
    notes = failure_notes(cells)
    if notes:
        parts.append(bullets(notes))
    return "\n\n".join(parts)
