"""Figures that are required: measured, printed, and written as results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from textwrap import fill

from benchmarks.contenders import CONTENDERS, Contender
from benchmarks.files import write_results
from benchmarks.judging import Bench, Contest, Figure, Measure, judge, times, verdict_table
from benchmarks.render import RATE_LEGEND, bullets, failure_notes, markdown_document, rate_text
from benchmarks.runner import Runner
from shoal._bench import machine
from shoal._bench.results import Cell, Report
from shoal._bench.runner import Settings
from shoal._bench.tables import Table, markdown, plain

__all__ = ["RatesTable", "measure_required", "worth_of_threads"]

RatesTable = Callable[[Sequence[Cell]], Table]
"""Draws a table of the rates in cells."""

_WORTH = {2: 1.8, 16: 12.0}
"""What so many cores must be worth, next to one of them."""


def worth_of_threads(together: str, alone: str, workload: str, num_envs: int) -> list[Figure]:
    """What all cores of this machine together must be worth, where that was said."""
    worth = _WORTH.get(machine.core_count())
    return [] if worth is None else [times(together, alone, workload, num_envs, at_least=worth)]


def measure_required(
    name: str,
    figures: Sequence[Figure],
    legend: str,
    settings: Settings,
    output: Path,
    *,
    title: str | None = None,
    contenders: Iterable[Contender] = CONTENDERS.values(),
    apart: Mapping[str, Measure] | None = None,
    versions: Mapping[str, dict[str, str]] | None = None,
    also: Iterable[Contest] = (),
    rates: RatesTable | None = None,
) -> bool:
    """Measure figures, print tables, and write them under a name; whether they were reached.

    Args:
        name: Of the files.
        figures: What is required.
        legend: What must be known to read the tables.
        settings: How it is measured.
        output: The folder.
        title: Of the document; by default the name.
        contenders: Those that may be measured.
        apart: How workloads are measured that are no contenders' matter.
        versions: What these were measured with.
        also: Contests that are measured for comparison, with no bound.
        rates: Draws the table of all rates; by default a row for each cell and contender.
    """
    here = machine.describe()
    contests = [figure.contest for figure in figures if figure.contest] + [*also]
    with Runner(contenders, settings) as runner:
        bench = Bench(runner, contests, apart)
        verdicts = judge(figures, bench)
    cells = list(bench.cells.values())
    report = Report(here, asdict(settings), {**runner.versions, **(versions or {})}, cells)
    data = {**report.as_json(), "figures": [verdict.as_json() for verdict in verdicts]}
    tables = [verdict_table(verdicts), (rates or _rates_table)(cells)]
    parts = partial(_parts, tables, f"{RATE_LEGEND} {legend}", failure_notes(cells))
    print("\n\n".join(parts(plain, partial(fill, width=100))))
    document = markdown_document(title or name.capitalize(), report, *parts(markdown, str))
    write_results(output, name, data, document)
    return all(verdict.reached for verdict in verdicts)


def _rates_table(cells: Sequence[Cell]) -> Table:
    rows = [
        [f"{cell.workload} x {cell.num_envs}, {name}", rate_text(cell, name)]
        for cell in cells
        for name in cell.contenders
    ]
    return Table(["", "steps/s"], rows)


def _parts(
    tables: Sequence[Table],
    legend: str,
    notes: list[str],
    draw: Callable[[Table], str],
    written: Callable[[str], str],
) -> list[str]:
    parts = [*map(draw, tables), written(legend), bullets(notes)]
    return [part for part in parts if part]
