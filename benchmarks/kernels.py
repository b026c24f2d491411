"""Shoal's kernels next to EnvPool, to plain loops in C, and to themselves on one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from textwrap import fill

from benchmarks import machine
from benchmarks.contenders import CONTENDERS
from benchmarks.files import write_results
from benchmarks.judging import Bench, Figure, Verdict, judge, times, verdict_table
from benchmarks.render import RATE_LEGEND, bullets, failure_notes, markdown_document, rate_text
from benchmarks.results import Cell, Report
from benchmarks.runner import Runner, Settings
from benchmarks.tables import Table, markdown, plain
from benchmarks.workloads import GYMNASIUM_IDS

__all__ = ["REQUIRED", "measure_kernels"]

_KERNEL, _ONE_THREAD, _FIRST_COME = "shoal-kernel", "shoal-kernel-1", "shoal-kernel-first-come"

REQUIRED = (
    *(
        times(*pair, "cartpole", num_envs, at_least=at_least)
        for num_envs, at_least in ((1024, 10.0), (65_536, 10.0), (8, 2.0), (64, 2.0))
        for pair in ((_KERNEL, "envpool"), (_FIRST_COME, "envpool-async"))
    ),
    times(_KERNEL, "envpool", "cartpole", 1, at_least=2.0),
    *(times(_KERNEL, "gymnasium-sync", "cartpole", n, at_least=1.0) for n in (1, 8, 64)),
    *(times(_ONE_THREAD, "plain-c", name, 4096, at_least=0.7) for name in GYMNASIUM_IDS),
    times("shoal-kernel-numba", "shoal-kernel-c", "swing", 4096, at_least=0.5),
)
"""What must be reached on any number of cores; what threads are worth depends on it."""

_LEGEND = (
    f"{RATE_LEGEND} Measured: the median over rounds of the ratio within a round. plain-c is a "
    "loop in C over the same physics, on one core; the first-come kernel and envpool-async get "
    "half of their environments back at a time."
)


def _of_threads(cores: int) -> Figure | None:
    """What all cores together must be worth, where that was said."""
    worth = {2: 1.8, 16: 12.0}.get(cores)
    if worth is None:
        return None
    return times(_KERNEL, _ONE_THREAD, "cartpole", 65_536, at_least=worth)


def measure_kernels(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``kernels`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    here = machine.describe()
    threads = _of_threads(machine.core_count())
    figures = REQUIRED if threads is None else (*REQUIRED, threads)
    contests = [figure.contest for figure in figures if figure.contest]
    with Runner(CONTENDERS.values(), settings) as runner:
        bench = Bench(runner, contests)
        verdicts = judge(figures, bench)
    cells = list(bench.cells.values())
    report = Report(here, asdict(settings), runner.versions, cells)
    data = {**report.as_json(), "figures": [verdict.as_json() for verdict in verdicts]}
    parts = partial(_parts, cells, verdicts)
    print("\n\n".join(parts(plain, partial(fill, width=100))))
    write_results(
        output, "kernels", data, markdown_document("Kernels", report, *parts(markdown, str))
    )
    return all(verdict.reached for verdict in verdicts)


def _parts(
    cells: Sequence[Cell],
    verdicts: Sequence[Verdict],
    draw: Callable[[Table], str],
    written: Callable[[str], str],
) -> list[str]:
    rates = [
        [f"{cell.workload} x {cell.num_envs}, {name}", rate_text(cell, name)]
        for cell in cells
        for name in cell.contenders
    ]
    parts = [
        draw(verdict_table(verdicts)),
        draw(Table(["", "steps/s"], rates)),
        written(_LEGEND),
        bullets(failure_notes(cells)),
    ]
    return [part for part in parts if part]
