"""What many cores are worth to Shoal, next to a plain loop on one of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks.contenders import CONTENDERS
from benchmarks.files import write_results
from benchmarks.judging import Bench, Contest, Verdict, judge, rate, times, verdict_table
from benchmarks.render import RATE_LEGEND, bullets, failure_notes, markdown_document, rate_text
from benchmarks.runner import Runner
from shoal._bench import machine
from shoal._bench.contenders.shoal_vectors import Shoal
from shoal._bench.results import Cell, Report
from shoal._bench.runner import Settings
from shoal._bench.tables import Table, markdown, plain

__all__ = ["REQUIRED", "cores_worth", "measure_scale", "worker_counts"]

_ONE_CORE = "loop"
_CONTENDERS = (_ONE_CORE, "shoal-inline", "shoal", "shoal-process")
_PLACES = (("burn100us", 512), ("cartpole", 512), ("noop", 4096))

_STAIRCASE = ("cartpole", 512)
"""Where the number of workers is varied besides."""

_REQUIRED_CORES = 16

REQUIRED = (
    times("shoal-process", _ONE_CORE, "burn100us", 512, at_least=13.0),
    times("shoal-process", _ONE_CORE, "cartpole", 512, at_least=10.0),
    rate("shoal-process", "noop", 4096, at_least=40.0),
)

_LEGEND = (
    f"{RATE_LEGEND} Cores' worth: how many times faster than the loop over one environment on one "
    "core, the median over rounds of the ratio within a round. With n workers, the caller works "
    "besides."
)


def measure_scale(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``scale`` as JSON and Markdown.

    Returns whether the required figures were reached; they are judged only where there are as many
    cores as they are about.
    """
    here = machine.describe()
    stairs = [
        Shoal(f"shoal, {count} worker{'s' if count > 1 else ''}", backend="process", workers=count)
        for count in worker_counts(here["cores"])
    ]
    contests = [Contest(*place, _CONTENDERS) for place in _PLACES]
    contests.append(Contest(*_STAIRCASE, tuple(each.name for each in stairs)))
    required = REQUIRED if here["cores"] == _REQUIRED_CORES else ()
    with Runner([*(CONTENDERS[name] for name in _CONTENDERS), *stairs], settings) as runner:
        bench = Bench(runner, contests)
        cells = []
        for workload, num_envs in _PLACES:
            print(f"{workload} x {num_envs}", file=sys.stderr, flush=True)
            cells.append(bench.cell(workload, num_envs))
        verdicts = judge(required, bench)
    report = Report(here, asdict(settings), runner.versions, cells)
    print(f"{_document(cells, verdicts, plain)}\n\n{fill(_LEGEND, 100)}")
    document = markdown_document("Scale", report, _LEGEND, _document(cells, verdicts, markdown))
    write_results(output, "scale", _data(report, verdicts), document)
    return all(verdict.reached for verdict in verdicts)


def worker_counts(cores: int) -> list[int]:
    """Choose numbers of workers, up to one fewer than there are cores: the caller has the last."""
    most = max(1, cores - 1)
    return [*(count for count in (1, 2, 4, 8) if count < most), most]


def cores_worth(cell: Cell) -> dict[str, float]:
    """Say how many cores' worth of steps each contender of a cell takes, where that was measured.

    A core's worth is what the plain loop over one environment takes.
    """
    worth = {name: cell.ratio(_ONE_CORE, name) for name in cell.contenders}
    return {name: ratio for name, ratio in worth.items() if ratio is not None}


def _data(report: Report, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    data = report.as_json()
    for entry, cell in zip(data["cells"], report.cells, strict=True):
        entry["cores_worth"] = cores_worth(cell)
    return {**data, "figures": [verdict.as_json() for verdict in verdicts]}


def _document(
    cells: Sequence[Cell], verdicts: Sequence[Verdict], draw: Callable[[Table], str]
) -> str:
    parts = [draw(_cell_table(cell)) for cell in cells]
    if verdicts:
        parts.append(draw(verdict_table(verdicts)))
    notes = failure_notes(cells)
    if notes:
        parts.append(bullets(notes))
    return "\n\n".join(parts)


def _cell_table(cell: Cell) -> Table:
    worth = cores_worth(cell)
    rows = [
        [name, rate_text(cell, name), f"{worth[name]:.2f}" if name in worth else ""]
        for name in cell.contenders
    ]
    return Table([f"{cell.workload} x {cell.num_envs}", "steps/s", "cores' worth"], rows)
