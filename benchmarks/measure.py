"""Measures the figures of a group, prints the tables and writes them as Markdown."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill

from benchmarks.contenders import CONTENDERS
from benchmarks.figures import Figure, Group, Verdict
from benchmarks.render import as_figures
from benchmarks.runner import Runner
from benchmarks.turns import SPECIAL, Measuring, measure_special
from shoal._bench import machine
from shoal._bench.results import Cell, Report
from shoal._bench.tables import markdown, plain

__all__ = ["measure_figures", "missing_requirement", "write_figures"]


def missing_requirement(group: Group) -> str | None:
    """Return the reason why a group cannot be measured here, or None if it can."""
    if group.needs and find_spec(group.needs) is None:
        return f"the module {group.needs} is not installed"
    if group.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            return "PyTorch finds no GPU"
    return None


def measure_figures(
    group: Group,
    figures: Sequence[Figure],
    output: Path,
    rounds: int | None = None,
    seconds: float | None = None,
) -> bool:
    """Measure figures of a group, print them, and write the table if the group is complete.

    Args:
        group: The group.
        figures: Which of its figures to measure.
        output: The folder to which ``GROUP.md`` is written.
        rounds: The number of rounds instead of that of each figure.
        seconds: How long each contender is measured in a round instead of the group's time.

    Returns:
        Whether all requirements were met.
    """
    settings = Measuring(
        rounds=rounds or group.rounds, seconds=seconds or group.seconds, device=group.device
    )
    description = machine.describe()
    if group.device == "cuda":
        import torch

        description["device"] = torch.cuda.get_device_name()
    cells, versions = _measure_cells(figures, settings, own_rounds=rounds is None)
    verdicts = [figure.evaluate(cells[figure.workload, figure.size]) for figure in figures]
    if group.packages:
        versions["all" if not versions else "other"] = _versions(group.packages)
    report = Report(description, asdict(settings), versions, list(cells.values()))
    print("\n\n".join(as_figures(group, report, verdicts, plain, lambda text: fill(text, 100))))
    if len(figures) == len(group.figures):
        write_figures(output, group, report, verdicts)
    return all(verdict.is_reached for verdict in verdicts)


def write_figures(output: Path, group: Group, report: Report, verdicts: Sequence[Verdict]) -> None:
    """Write the tables of a group as ``GROUP.md``; the folder is created if it is missing."""
    output.mkdir(parents=True, exist_ok=True)
    parts = as_figures(group, report, verdicts, markdown, str)
    (output / f"{group.name}.md").write_text("\n\n".join(parts) + "\n")


def _measure_cells(
    figures: Sequence[Figure], settings: Measuring, *, own_rounds: bool
) -> tuple[dict[tuple[str, int], Cell], dict[str, dict[str, str]]]:
    """Measure every cell once, with all contenders that any figure needs there."""
    places: dict[tuple[str, int], list[Figure]] = {}
    for figure in figures:
        places.setdefault((figure.workload, figure.size), []).append(figure)
    cells = {}
    with Runner(CONTENDERS.values(), settings) as runner:
        for number, ((workload, size), needed) in enumerate(places.items(), 1):
            print(f"[{number}/{len(places)}] {workload} x {size}", file=sys.stderr, flush=True)
            names = dict.fromkeys(name for figure in needed for name in figure.contenders)
            count = max(figure.rounds or settings.rounds for figure in needed)
            chosen = replace(settings, rounds=count) if own_rounds else settings
            if workload in SPECIAL:
                cell = measure_special(workload, size, names, chosen)
            else:
                runner.settings = chosen
                cell = runner.measure(workload, size, names)
            cells[workload, size] = cell
    return cells, runner.versions


def _versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of the packages that are installed here."""
    found = {"python": platform.python_version()}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
