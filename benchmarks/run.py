"""A complete run: every workload, contender and number of environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path

from benchmarks.contenders import CONTENDERS
from benchmarks.render import as_markdown, as_text
from benchmarks.runner import Runner
from shoal._bench import machine, plot
from shoal._bench.results import Report
from shoal._bench.runner import Settings

__all__ = ["run"]


def run(
    workloads: Sequence[str],
    contenders: Sequence[str],
    num_envs: Sequence[int],
    settings: Settings,
    output: Path,
) -> None:
    """Measure all cells, print the tables, and write ``latest.md`` and ``latest.png``."""
    description = machine.describe()
    with Runner([CONTENDERS[name] for name in contenders], settings) as runner:
        cells = runner.measure_all(list(product(workloads, num_envs)))
    report = Report(description, asdict(settings), runner.versions, cells)
    print(as_text(report))
    output.mkdir(parents=True, exist_ok=True)
    (output / "latest.md").write_text(as_markdown(report))
    plot.save(report, output / "latest.png")
