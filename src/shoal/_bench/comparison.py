"""A comparison of all contenders for one environment: measured, judged, and as plain data."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shoal._bench import machine
from shoal._bench.advice import Advice, advise
from shoal._bench.contender_selection import LOOP, ContenderSelection
from shoal._bench.contenders.base import Contender
from shoal._bench.contenders.shoal_vectors import Shoal, plan_summary
from shoal._bench.probe import EnvProfile
from shoal._bench.results import Cell, Report
from shoal._bench.runner import Runner, Settings
from shoal._bench.workload import Workload

__all__ = ["CellResult", "Comparison", "compare"]


@dataclass(frozen=True)
class CellResult:
    """What was measured with one number of environments, and what follows from it."""

    cell: Cell
    best_peer: str | None
    """The fastest of the other libraries."""
    advice: Advice | None
    """None where no way of Shoal's could be measured."""

    def times(self, name: str, other: str | None) -> float | None:
        """How many times another contender's rate one's is, where both were measured."""
        return None if other is None else self.cell.ratio(other, name)


@dataclass(frozen=True)
class Comparison:
    """All that was found out about an environment."""

    report: Report
    seen: EnvProfile
    field: ContenderSelection
    outcomes: list[CellResult]
    load: float
    """How many processes wanted to run on the machine just before."""

    @property
    def doubts(self) -> list[str]:
        """What of the machine makes this uncertain, in words."""
        cores = self.report.machine["cores"]
        if self.load <= cores / 2:
            return []
        return [
            f"The machine is busy with other work (a load of {self.load:.1f} on {cores} cores), so "
            "little of this is certain."
        ]

    def warnings(self) -> list[str]:
        """Say what of the environment or of the machine is in the way."""
        return [*self.seen.warnings(), *self.doubts]

    def as_json(self) -> dict[str, Any]:
        """Give all of it as plain data."""
        return {
            **self.report.as_json(),
            "environment": asdict(self.seen),
            "load": self.load,
            "warnings": self.warnings(),
            "left_out": self.field.left_out,
            "cells": [self._cell_as_json(outcome) for outcome in self.outcomes],
        }

    def _cell_as_json(self, outcome: CellResult) -> dict[str, Any]:
        told = outcome.cell.as_json()
        for name, measured in told["contenders"].items():
            if name in outcome.cell.rates:
                measured["times_loop"] = outcome.times(name, LOOP)
                measured["times_best_peer"] = outcome.times(name, outcome.best_peer)
        return {**told, "best_peer": outcome.best_peer}


def compare(
    workload: Workload,
    seen: EnvProfile,
    field: ContenderSelection,
    num_envs: Sequence[int],
    settings: Settings,
    watch: Callable[[Contender, Cell], object] | None = None,
) -> Comparison:
    """Measure everybody with each number of environments.

    ``watch`` is called with a contender and its cell before each of its turns.
    """
    here, load = machine.describe(), os.getloadavg()[0]
    with Runner(
        field.contenders, {workload.name: workload}, settings, watch=watch, way=_way
    ) as runner:
        cells = [runner.measure(workload.name, count, field.names(count)) for count in num_envs]
    report = Report(here, asdict(settings), runner.versions, cells)
    return Comparison(report, seen, field, [_judged(cell, field) for cell in cells], load)


def _way(contender: Contender, note: str) -> str | None:
    return plan_summary(note) if isinstance(contender, Shoal) else None


def _judged(cell: Cell, field: ContenderSelection) -> CellResult:
    ways = {way.name: cell.rates[way.name] for way in field.ways if way.name in cell.rates}
    return CellResult(cell, cell.best(peer.name for peer in field.peers), advise(ways))
