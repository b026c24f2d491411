"""Figures with bounds: how they are measured, and whether they keep the bounds."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.runner import Runner
from shoal._bench.results import Cell, summarize
from shoal._bench.tables import Table

__all__ = [
    "Bench",
    "Contest",
    "Figure",
    "Measure",
    "Verdict",
    "judge",
    "rate",
    "times",
    "verdict_table",
]

Measure = Callable[[str, int, Collection[str]], Cell]
"""Measures a cell: its workload, its number of environments, and the names of its contenders."""


class Contest(NamedTuple):
    """Contenders that are measured against each other, and in which cell."""

    workload: str
    num_envs: int
    contenders: tuple[str, ...]


class Bench:
    """Where figures are measured.

    Every cell is measured once, whoever asks for it, with those contenders alone that have a
    contest there.

    Args:
        runner: Measures the workloads that are environments.
        contests: What may be asked for.
        apart: Measures the other workloads, by their names.
    """

    def __init__(
        self,
        runner: Runner,
        contests: Iterable[Contest],
        apart: Mapping[str, Measure] | None = None,
    ) -> None:
        self.cells: dict[tuple[str, int], Cell] = {}
        self._runner = runner
        self._apart = apart or {}
        self._names: dict[tuple[str, int], set[str]] = {}
        for workload, num_envs, contenders in contests:
            self._names.setdefault((workload, num_envs), set()).update(contenders)

    def cell(self, workload: str, num_envs: int) -> Cell:
        """Give a cell, measured now or before."""
        place = workload, num_envs
        if place not in self.cells:
            measure = self._apart.get(workload, self._runner.measure)
            self.cells[place] = measure(workload, num_envs, self._names[place])
        return self.cells[place]


@dataclass(frozen=True)
class Figure:
    """A number with the bound that it must keep; ``measure`` gives none where that failed."""

    what: str
    measure: Callable[[Bench], float | None]
    at_least: float = -math.inf
    at_most: float = math.inf
    contest: Contest | None = None
    """What a bench must have measured for it, if anything."""
    slow: bool = False
    """Whether it takes minutes, so that it is left out unless asked for."""

    @property
    def bound(self) -> str:
        """The bound, as one reads it."""
        return f"<= {self.at_most:g}" if self.at_least == -math.inf else f">= {self.at_least:g}"

    def reached(self, value: float | None) -> bool:
        """Whether a measured value keeps the bound."""
        return value is not None and self.at_least <= value <= self.at_most


def times(
    subject: str,
    rival: str,
    workload: str,
    num_envs: int,
    *,
    at_least: float,
    cores: int = 1,
    slow: bool = False,
) -> Figure:
    """Say how many times faster than a rival a contender must be.

    A rival that keeps one core busy can be multiplied: by ``cores``, as if it ran on so many.
    """

    def ratio(bench: Bench) -> float | None:
        ratio = bench.cell(workload, num_envs).ratio(rival, subject)
        return None if ratio is None else ratio / cores

    many = f" on {cores} cores" if cores > 1 else ""
    return Figure(
        f"{workload} {num_envs}: {subject} times {rival}{many}",
        ratio,
        at_least,
        contest=Contest(workload, num_envs, (subject, rival)),
        slow=slow,
    )


def rate(subject: str, workload: str, num_envs: int, *, at_least: float) -> Figure:
    """Say how many million environment steps per second a contender must take."""

    def millions(bench: Bench) -> float | None:
        rates = bench.cell(workload, num_envs).rates.get(subject)
        return None if rates is None else summarize(rates).median / 1e6

    return Figure(
        f"{workload} {num_envs}: {subject}, million steps/s",
        millions,
        at_least,
        contest=Contest(workload, num_envs, (subject,)),
    )


@dataclass(frozen=True)
class Verdict:
    """A figure and what was measured of it."""

    figure: Figure
    value: float | None

    @property
    def reached(self) -> bool:
        """Whether the figure keeps its bound."""
        return self.figure.reached(self.value)

    def as_json(self) -> dict[str, Any]:
        """Give the verdict as plain data."""
        return {
            "figure": self.figure.what,
            "required": self.figure.bound,
            "measured": self.value,
            "reached": self.reached,
        }


def judge(figures: Sequence[Figure], bench: Bench) -> list[Verdict]:
    """Measure every figure, and say which is next."""
    verdicts = []
    for number, figure in enumerate(figures, 1):
        print(f"[{number}/{len(figures)}] {figure.what}", file=sys.stderr, flush=True)
        verdicts.append(Verdict(figure, figure.measure(bench)))
    return verdicts


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Lay out verdicts, a row for each."""
    rows = [
        [
            verdict.figure.what,
            verdict.figure.bound,
            "failed" if verdict.value is None else f"{verdict.value:.2f}",
            "reached" if verdict.reached else "MISSED",
        ]
        for verdict in verdicts
    ]
    return Table(["figure", "required", "measured", ""], rows)
