"""Shoal behind Stable-Baselines3's interface, next to Stable-Baselines3 itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from textwrap import fill

from benchmarks.contenders import CONTENDERS
from benchmarks.files import write_results
from benchmarks.judging import Bench, Measure, Verdict, judge, times, verdict_table
from benchmarks.render import RATE_LEGEND, bullets, failure_notes, markdown_document, rate_text
from benchmarks.runner import Runner
from benchmarks.training import (
    NUM_ENVS,
    PPO,
    TRAINING_LEGEND,
    Training,
    TrainingSettings,
    training_table,
)
from benchmarks.wrappers import WRAPPERS, measure_wrapper
from shoal._bench import machine
from shoal._bench.results import Cell, Report
from shoal._bench.runner import Settings
from shoal._bench.tables import Table, markdown, plain

__all__ = ["REQUIRED", "measure_sb3", "measured_apart"]

_DUMMY = ("shoal-sb3-dummy", "sb3-dummy")
_SUBPROC = ("shoal-sb3-subproc", "sb3-subproc")
_WRAPPERS = ("shoal-sb3", "sb3")

REQUIRED = (
    times(*_DUMMY, "noop", 8, at_least=4.0),
    times(*_DUMMY, "noop", 128, at_least=6.0),
    times(*_SUBPROC, "noop", 8, at_least=30.0),
    times(*_SUBPROC, "cartpole", 8, at_least=6.0),
    times(*_WRAPPERS, "VecFrameStack", 32, at_least=3.0),
    times(*_WRAPPERS, "VecNormalize", 128, at_least=1.5),
    times(*_SUBPROC, PPO, NUM_ENVS, at_least=1.25, slow=True),
    times(*_DUMMY, PPO, NUM_ENVS, at_least=1.0, slow=True),
)

_LEGEND = (
    f"{RATE_LEGEND} Measured: how many times faster Shoal is, the median over rounds of the ratio "
    "within a round. VecFrameStack, of four images of 84x84x1, and VecNormalize, of 64 numbers, "
    "are the wrappers alone, both in one process around a vector of prepared batches, whose time "
    "is taken off."
)


def measured_apart(settings: Settings, training: Training) -> dict[str, Measure]:
    """Say how the workloads are measured that are no environments, by their names."""
    wrapper = partial(measure_wrapper, settings)
    return {**dict.fromkeys(WRAPPERS, wrapper), PPO: training.measure}


def measure_sb3(settings: Settings, training_settings: TrainingSettings, output: Path) -> bool:
    """Measure, print tables, and write ``sb3`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    here = machine.describe()
    training = Training(training_settings)
    contests = [figure.contest for figure in REQUIRED if figure.contest]
    with Runner(CONTENDERS.values(), settings) as runner:
        bench = Bench(runner, contests, measured_apart(settings, training))
        verdicts = judge(REQUIRED, bench)
    cells = list(bench.cells.values())
    report = Report(here, asdict(settings), runner.versions, cells)
    data = {
        **report.as_json(),
        "training": training.as_json(),
        "figures": [verdict.as_json() for verdict in verdicts],
    }
    parts = partial(_parts, cells, verdicts, training)
    print("\n\n".join(parts(plain, partial(fill, width=100))))
    write_results(
        output, "sb3", data, markdown_document("Stable-Baselines3", report, *parts(markdown, str))
    )
    return all(verdict.reached for verdict in verdicts)


def _parts(
    cells: Sequence[Cell],
    verdicts: Sequence[Verdict],
    training: Training,
    draw: Callable[[Table], str],
    written: Callable[[str], str],
) -> list[str]:
    stepped = [cell for cell in cells if cell.workload != PPO]
    trained = [cell for cell in cells if cell.workload == PPO]
    parts = [
        draw(verdict_table(verdicts)),
        draw(_rates_table(stepped)),
        written(_LEGEND),
        *(draw(training_table(cell, training.runs)) for cell in trained),
        written(f"{TRAINING_LEGEND} {training.settings}."),
        bullets(failure_notes(cells)),
    ]
    return [part for part in parts if part]


def _rates_table(cells: Sequence[Cell]) -> Table:
    rows = [
        [
            f"{cell.workload} x {cell.num_envs}, {name}",
            rate_text(cell, name),
            cell.notes.get(name, ""),
        ]
        for cell in cells
        for name in cell.contenders
    ]
    return Table(["", "steps/s", ""], rows)
