"""RLlib's env runners on Shoal's vector, next to RLlib's own vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill

from benchmarks import machine
from benchmarks.contenders.rllib_runners import RLLIB_CONTENDERS
from benchmarks.files import write_results
from benchmarks.judging import Bench, Contest, Verdict, judge, times, verdict_table
from benchmarks.render import RATE_LEGEND, bullets, failure_notes, markdown_document, rate_text
from benchmarks.results import Cell, Report, contenders_of
from benchmarks.runner import Runner, Settings
from benchmarks.tables import Table, markdown, plain

__all__ = ["REQUIRED", "is_installed", "measure_rllib"]

_WORKLOAD = "cartpole"
_NUM_ENVS = (8, 64, 256)
_OURS, _THEIRS = "shoal-rllib", "rllib-sync"

REQUIRED = tuple(times(_OURS, _THEIRS, _WORKLOAD, count, at_least=1.5) for count in _NUM_ENVS)

_FOR_COMPARISON = (
    *(
        Contest(
            _WORKLOAD,
            count,
            (
                "shoal-rllib-vector",
                "rllib-sync-batched",
                "shoal-rllib-random",
                "rllib-sync-random",
            ),
        )
        for count in _NUM_ENVS
    ),
    Contest(_WORKLOAD, 8, ("rllib-async",)),  # a process for each environment
)

_LEGEND = (
    f"{RATE_LEGEND} An env runner of PPO in one process samples rollouts of 4,000 steps, PPO's "
    "default, with one thread for PyTorch. shoal-rllib: Shoal's vector and Shoal's env runner. "
    "shoal-rllib-vector: the same vector in RLlib's env runner, which treats actions one by one. "
    "rllib-sync, rllib-async: RLlib's own. rllib-sync-batched: its vector in Shoal's env runner. "
    "random: without the module. x: how many times as fast as rllib-sync, which is without it as "
    "well where the contender is; the median over rounds of the ratio within a round. The required "
    "figures are of vector and env runner together: what each is worth by itself is told by "
    "shoal-rllib-vector and rllib-sync-batched."
)


def is_installed() -> bool:
    """Whether this interpreter has RLlib, which asks for a Gymnasium of its own choice."""
    return find_spec("ray") is not None and find_spec("tree") is not None


def measure_rllib(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``rllib`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    here = machine.describe()
    contests = [figure.contest for figure in REQUIRED if figure.contest] + list(_FOR_COMPARISON)
    with Runner(RLLIB_CONTENDERS, settings) as runner:
        bench = Bench(runner, contests)
        verdicts = judge(REQUIRED, bench)
    cells = list(bench.cells.values())
    report = Report(here, asdict(settings), runner.versions, cells)
    data = {**report.as_json(), "figures": [verdict.as_json() for verdict in verdicts]}
    parts = partial(_parts, cells, verdicts)
    print("\n\n".join(parts(plain, partial(fill, width=100))))
    write_results(output, "rllib", data, markdown_document("RLlib", report, *parts(markdown, str)))
    return all(verdict.reached for verdict in verdicts)


def _parts(
    cells: Sequence[Cell],
    verdicts: Sequence[Verdict],
    draw: Callable[[Table], str],
    written: Callable[[str], str],
) -> list[str]:
    parts = [
        draw(verdict_table(verdicts)),
        draw(_rates_table(cells)),
        written(_LEGEND),
        bullets(failure_notes(cells)),
    ]
    return [part for part in parts if part]


def _rates_table(cells: Sequence[Cell]) -> Table:
    header = [f"{_WORKLOAD}, steps/s"]
    for cell in cells:
        header += [f"{cell.num_envs} envs", "x"]
    rows = []
    for name in contenders_of(cells):
        row = [name]
        for cell in cells:
            rival = f"{_THEIRS}-random" if name.endswith("-random") else _THEIRS
            ratio = cell.ratio(rival, name)
            row += [rate_text(cell, name), "" if ratio is None else f"{ratio:.2f}"]
        rows.append(row)
    return Table(header, rows)
