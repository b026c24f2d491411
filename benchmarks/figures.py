"""The figures that Shoal must reach, and whether it does on this machine.

A new requirement is a new row of ``REQUIRED``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from benchmarks.contenders import CONTENDERS
from benchmarks.overhead import measure_overhead
from benchmarks.render import failure_notes
from benchmarks.results import SUBJECT, Cell
from benchmarks.runner import Runner, Settings
from benchmarks.tables import Table, plain

__all__ = ["REQUIRED", "check"]


class Figure(Protocol):
    """A number that is measured, with a bound that it must keep."""

    @property
    def what(self) -> str:
        """What is measured."""

    @property
    def bound(self) -> str:
        """What is required of it."""

    def measure(self, bench: Bench) -> float | None:
        """Take the number; none where a contender failed."""

    def reached_by(self, value: float) -> bool:
        """Whether this value keeps the bound."""


@dataclass(frozen=True)
class Speedup:
    """Shoal's rate over another contender's, in one cell."""

    workload: str
    num_envs: int
    over: str
    at_least: float

    @property
    def what(self) -> str:
        """Which cell, and over whom."""
        return f"{self.workload} {self.num_envs}: times {self.over}"

    @property
    def bound(self) -> str:
        """How many times."""
        return f">= {self.at_least:g}"

    def measure(self, bench: Bench) -> float | None:
        """Take the ratio from the cell."""
        return bench.cell(self.workload, self.num_envs).ratio(self.over)

    def reached_by(self, value: float) -> bool:
        """Whether Shoal is fast enough."""
        return value >= self.at_least
