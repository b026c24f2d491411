"""A whole run: every workload, contender and number of environments; results as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path

from benchmarks import machine, plot
from benchmarks.contenders import CONTENDERS
from benchmarks.render import as_markdown, as_text
from benchmarks.results import Report
from benchmarks.runner import Runner, Settings

__all__ = ["run"]


def run(
    workloads: Sequence[str],
    contenders: Sequence[str],
    num_envs: Sequence[int],
    settings: Settings,
    output: Path,
) -> None:
    """Measure all cells, print tables, and write ``latest`` as JSON, Markdown and a plot."""
    here = machine.describe()
    with Runner([CONTENDERS[name] for name in contenders], settings) as runner:
        cells = runner.measure_all(list(product(workloads, num_envs)))
    report = Report(here, asdict(settings), runner.versions, cells)
    print(as_text(report))
    output.mkdir(parents=True, exist_ok=True)
    (output / "latest.json").write_text(json.dumps(report.as_json(), indent=2) + "\n")
    (output / "latest.md").write_text(as_markdown(report))
    plot.save(report, output / "latest.png")
