"""RLlib's env runners on Shoal's vector, next to RLlib's own vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.contenders.rllib_runners import RLLIB_CONTENDERS
from benchmarks.judging import Contest, times
from benchmarks.render import rate_text
from benchmarks.required import measure_required
from shoal._bench.results import Cell, contenders_of
from shoal._bench.runner import Settings
from shoal._bench.tables import Table

__all__ = ["REQUIRED", "measure_rllib"]

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
    "An env runner of PPO in one process samples rollouts of 4,000 steps, PPO's "
    "default, with one thread for PyTorch. shoal-rllib: Shoal's vector and Shoal's env runner. "
    "shoal-rllib-vector: the same vector in RLlib's env runner, which treats actions one by one. "
    "rllib-sync, rllib-async: RLlib's own. rllib-sync-batched: its vector in Shoal's env runner. "
    "random: without the module. x: how many times as fast as rllib-sync, which is without it as "
    "well where the contender is; the median over rounds of the ratio within a round. The required "
    "figures are of vector and env runner together: what each is worth by itself is told by "
    "shoal-rllib-vector and rllib-sync-batched."
)


def measure_rllib(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``rllib`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    return measure_required(
        "rllib",
        REQUIRED,
        _LEGEND,
        settings,
        output,
        title="RLlib",
        contenders=RLLIB_CONTENDERS,
        also=_FOR_COMPARISON,
        rates=_rates_table,
    )


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
