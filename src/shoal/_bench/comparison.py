"""A comparison of all contenders for one environment."""

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
    """The measurements for one number of environments, and the recommendation."""

    cell: Cell
    best_peer: str | None
    """The fastest contender of the other libraries."""
    advice: Advice | None
    """None if no configuration of Shoal could be measured."""

    def speedup(self, name: str, other: str | None) -> float | None:
        """Return the speed of one contender divided by another's; None if one is not measured."""
        return None if other is None else self.cell.ratio(other, name)


@dataclass(frozen=True)
class Comparison:
    """All results for one environment."""

    report: Report
    profile: EnvProfile
    selection: ContenderSelection
    outcomes: list[CellResult]
    load: float
    """The load average before the measurements."""

    @property
    def doubts(self) -> list[str]:
        """Reasons in the machine's state why the results are unreliable, as sentences."""
        cores = self.report.machine["cores"]
        if self.load <= cores / 2:
            return []
        return [
            f"The machine is busy (load average {self.load:.1f} on {cores} cores): the results are "
            "unreliable."
        ]

    def warnings(self) -> list[str]:
        """Return the warnings about the environment and the machine."""
        return [*self.profile.warnings(), *self.doubts]

    def as_json(self) -> dict[str, Any]:
        """Return all results as plain data."""
        return {
            **self.report.as_json(),
            "environment": asdict(self.profile),
            "load": self.load,
            "warnings": self.warnings(),
            "left_out": self.selection.skipped,
            "cells": [self._cell_as_json(outcome) for outcome in self.outcomes],
        }

    def _cell_as_json(self, outcome: CellResult) -> dict[str, Any]:
        data = outcome.cell.as_json()
        for name, measured in data["contenders"].items():
            if name in outcome.cell.rates:
                measured["times_loop"] = outcome.speedup(name, LOOP)
                measured["times_best_peer"] = outcome.speedup(name, outcome.best_peer)
        return {**data, "best_peer": outcome.best_peer}


def compare(
    workload: Workload,
    profile: EnvProfile,
    selection: ContenderSelection,
    num_envs: Sequence[int],
    settings: Settings,
    watch: Callable[[Contender, Cell], object] | None = None,
) -> Comparison:
    """Measure all contenders with each number of environments.

    ``watch`` is called with a contender and its cell before each of its turns.
    """
    description, load = machine.describe(), os.getloadavg()[0]
    with Runner(
        selection.contenders, {workload.name: workload}, settings, watch=watch, plan_key=_plan_key
    ) as runner:
        cells = [runner.measure(workload.name, count, selection.names(count)) for count in num_envs]
    report = Report(description, asdict(settings), runner.versions, cells)
    return Comparison(
        report, profile, selection, [_result(cell, selection) for cell in cells], load
    )


def _plan_key(contender: Contender, note: str) -> str | None:
    return plan_summary(note) if isinstance(contender, Shoal) else None


def _result(cell: Cell, selection: ContenderSelection) -> CellResult:
    names = [each.name for each in selection.configurations if each.name in cell.rates]
    advice = advise({name: cell.rates[name] for name in names})
    return CellResult(cell, cell.best(peer.name for peer in selection.peers), advice)
