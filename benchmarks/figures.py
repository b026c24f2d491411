"""The figures that Shoal must reach, and whether it does on this machine.

A new requirement is a new row of ``REQUIRED``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.contenders import CONTENDERS
from benchmarks.overhead import measure_overhead
from benchmarks.render import failure_notes
from benchmarks.results import SUBJECT, Cell
from benchmarks.runner import Runner, Settings
from benchmarks.tables import Table, plain

__all__ = ["REQUIRED", "check"]


class Bench:
    """Where figures are measured: every cell once, whoever asks for it."""

    def __init__(self, runner: Runner) -> None:
        self.cells: dict[tuple[str, int], Cell] = {}
        self._runner = runner

    def cell(self, workload: str, num_envs: int) -> Cell:
        """Give a cell, measured now or before."""
        if (workload, num_envs) not in self.cells:
            self.cells[workload, num_envs] = self._runner.measure(workload, num_envs)
        return self.cells[workload, num_envs]


@dataclass(frozen=True)
class Figure:
    """A number with the bound that it must keep; ``measure`` gives none where that failed."""

    what: str
    measure: Callable[[Bench], float | None]
    at_least: float = -math.inf
    at_most: float = math.inf
    rival: str | None = None
    """The contender that Shoal is compared with, if any."""

    @property
    def bound(self) -> str:
        """The bound, as one reads it."""
        return f"<= {self.at_most:g}" if self.at_least == -math.inf else f">= {self.at_least:g}"

    def reached(self, value: float | None) -> bool:
        """Whether a measured value keeps the bound."""
        return value is not None and self.at_least <= value <= self.at_most


def _times(rival: str, workload: str, num_envs: int, at_least: float) -> Figure:
    def ratio(bench: Bench) -> float | None:
        return bench.cell(workload, num_envs).ratio(rival)

    return Figure(f"{workload} {num_envs}: times {rival}", ratio, at_least, rival=rival)


def _microseconds_per_slot(num_envs: int, at_most: float) -> Figure:
    def overhead(_: Bench) -> float:
        return measure_overhead(num_envs).median

    return Figure(f"noop {num_envs}: us per slot over env.step", overhead, at_most=at_most)


REQUIRED = (
    _times("gymnasium-sync", "noop", 8, at_least=5.0),
    _times("gymnasium-sync", "noop", 128, at_least=8.0),
    _times("gymnasium-sync", "image", 32, at_least=1.5),
    _times("gymnasium-sync", "dict", 32, at_least=4.0),
    _times("loop", "cartpole", 8, at_least=0.95),
    _times("loop", "cartpole", 128, at_least=0.95),
    _microseconds_per_slot(128, at_most=0.25),
)


def check(settings: Settings, figures: Sequence[Figure] = REQUIRED) -> bool:
    """Measure and print every figure; returns whether all were reached."""
    names = {SUBJECT, *(figure.rival for figure in figures if figure.rival)}
    rows, verdicts = [], []
    with Runner([CONTENDERS[name] for name in sorted(names)], settings) as runner:
        bench = Bench(runner)
        for figure in figures:
            print(figure.what, file=sys.stderr)
            value = figure.measure(bench)
            verdicts.append(figure.reached(value))
            measured = "failed" if value is None else f"{value:.2f}"
            verdict = "reached" if verdicts[-1] else "MISSED"
            rows.append([figure.what, figure.bound, measured, verdict])
    print(plain(Table(["figure", "required", "measured", ""], rows)))
    for note in failure_notes(list(bench.cells.values())):
        print(note)
    return all(verdicts)
