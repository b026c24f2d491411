"""Measures learning, prints tables and writes them."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import fill

import torch

from benchmarks.files import write_results
from benchmarks.judging import Bench, Verdict, verdict_table
from benchmarks.learning.cells import CURRICULUM, UNITS, Rounds, environments
from benchmarks.learning.figures import GUIDE, Plan
from benchmarks.learning.settings import LearningSettings
from benchmarks.render import bullets, failure_notes, markdown_document, rate_text
from benchmarks.runner import Runner
from shoal._bench import machine
from shoal._bench.results import Cell, Report
from shoal._bench.tables import Table, markdown, plain

__all__ = ["measure_learning"]

_PACKAGES = {
    "shoal": ("shoal", "torch", "numpy", "gymnasium"),
    "sb3": ("stable_baselines3",),
}

_LEGEND = (
    "Rates are medians over all rounds, plus or minus half the distance between the quartiles; "
    "'times' is the median over rounds of the ratio within a round. All run in one process, with "
    "the same threads. collection: the training loop on hockey, DDDQN [256,256] against the weak "
    "opponent; it acts and remembers, and learns nothing. updates: gradient steps by themselves, "
    "batches of 256 of 100,000 transitions (18 numbers seen; 4 done, or one of 8 choices), "
    "networks [256,256], by learn() and by train() of Stable-Baselines3, 25 to a call, matrices "
    "multiplied with the same precision; shoal-as-dqn is DDDQN without double and dueling, which "
    "is what DQN computes; shoal-dddqn also moves its target network in every update. PPO: the "
    "training loop of the config hockey_ppo, all that is learnt included. evaluation: games "
    "against scripted opponents, of an agent that has learnt nothing. Agents compute on: {device}; "
    "threads of PyTorch on the CPU: {threads}."
)

_CURRICULUM_LEGEND = (
    "The training loop of the guide's own config (its first phase) after the warm-up, {steps} "
    "environment steps a round, one update of DDDQN for each whatever the number of environments. "
    "x: times num_envs=1. The guide's figures are those that it tells of, on an RTX 3090; they are "
    "claims, not requirements."
)


def measure_learning(settings: LearningSettings, plan: Plan, output: Path | None) -> bool:
    """Measure, print tables, and write ``learning-cpu`` or ``learning-cuda``.

    Args:
        settings: How to measure.
        plan: What.
        output: The folder to write to; None to write nothing.

    Returns:
        Whether the required figures were reached.
    """
    here = machine.describe() | {"threads": torch.get_num_threads(), "device": _device(settings)}
    with Runner([], settings) as nobody:
        measure = Rounds(settings).measure
        bench = Bench(nobody, plan.contests, dict.fromkeys(UNITS, measure))
        places = list(dict.fromkeys(contest[:2] for contest in plan.contests))
        for number, (workload, count) in enumerate(places, 1):
            print(f"[{number}/{len(places)}] {workload} x {count}", file=sys.stderr, flush=True)
            bench.cell(workload, count)
    verdicts = [Verdict(figure, figure.measure(bench)) for figure in plan.figures]
    cells = list(bench.cells.values())
    report = Report(here, asdict(settings), _versions(), cells)
    parts = partial(_parts, report, verdicts)
    print("\n\n".join(parts(plain, partial(fill, width=100))))
    if output is not None:
        data = {
            **report.as_json(),
            "guide": GUIDE,
            "figures": [verdict.as_json() for verdict in verdicts],
        }
        title = f"Learning, {here['device']}"
        document = markdown_document(title, report, *parts(markdown, str))
        write_results(output, f"learning-{settings.device}", data, document)
    return all(verdict.reached for verdict in verdicts)


def _device(settings: LearningSettings) -> str:
    return torch.cuda.get_device_name() if settings.device == "cuda" else "CPU"


def _versions() -> dict[str, dict[str, str]]:
    """The versions of those packages that are there."""
    found: dict[str, dict[str, str]] = {}
    for name, packages in _PACKAGES.items():
        there = {}
        for package in packages:
            with suppress(PackageNotFoundError):
                there[package] = version(package)
        if there:
            found[name] = {"python": platform.python_version(), **there}
    return found


def _parts(
    report: Report,
    verdicts: Sequence[Verdict],
    draw: Callable[[Table], str],
    written: Callable[[str], str],
) -> list[str]:
    here, settings = report.machine, report.settings
    rated = [cell for cell in report.cells if cell.workload != CURRICULUM]
    compared = [cell for cell in report.cells if cell.workload == CURRICULUM]
    parts = [
        draw(verdict_table(verdicts)) if verdicts else "",
        draw(_rates_table(rated)) if rated else "",
        written(_LEGEND.format(device=here["device"], threads=here["threads"])),
    ]
    for cell in compared:
        parts += [draw(_curriculum_table(cell)), written(_CURRICULUM_LEGEND.format(**settings))]
    parts.append(bullets(failure_notes(report.cells)))
    return [part for part in parts if part]


def _rates_table(cells: Sequence[Cell]) -> Table:
    rows = [
        [f"{cell.workload} x {cell.num_envs}, {name}", rate_text(cell, name), UNITS[cell.workload]]
        for cell in cells
        for name in cell.contenders
    ]
    return Table(["", "rate", ""], rows)


def _curriculum_table(cell: Cell) -> Table:
    one = environments(1)
    rows = []
    for count, told in GUIDE.items():
        name = environments(count)
        ratio = cell.ratio(one, name)
        rows.append(
            [
                name,
                rate_text(cell, name),
                "" if ratio is None else f"{ratio:.2f}",
                cell.notes.get(name, ""),
                f"{told:,}",
                f"{told / GUIDE[1]:.1f}",
            ]
        )
    header = [cell.workload, UNITS[cell.workload], "x", "", "the guide, steps/s", "x"]
    return Table(header, rows)
