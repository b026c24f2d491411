"""The figures of ``figures.toml``: how they are selected, computed from a cell, and evaluated."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from shoal._bench import machine
from shoal._bench.results import Cell

__all__ = [
    "BEST_PEER",
    "PEERS",
    "Figure",
    "Group",
    "UnknownFigureError",
    "Verdict",
    "groups",
    "select",
]

BEST_PEER = "best peer"

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())

PEERS: tuple[str, ...] = tuple(_DATA.pop("peers"))
"""The contenders of which ``BEST_PEER`` is the fastest in its cell."""

_LIMIT = re.compile(r"(>=|<=) ([\d.]+)(?: on (\d+) cores)?")


class UnknownFigureError(Exception):
    """A name selects no figure."""


@dataclass(frozen=True)
class Figure:
    """A row of ``figures.toml``; see there for the columns."""

    group: str
    workload: str
    size: int
    contender: str
    baseline: str
    metric: str
    requirement: str
    rounds: int | None = None
    """How many rounds to measure; None for the number of the group."""

    @property
    def name(self) -> str:
        """The name that selects the figure on the command line."""
        parts = [self.group, f"{self.workload}-{self.size}", self.contender, self.baseline]
        return "/".join(part for part in parts if part).replace(", ", "-").replace(" ", "-")

    @property
    def contenders(self) -> tuple[str, ...]:
        """The contenders to measure, among them all candidates for the best peer."""
        others = PEERS if self.baseline == BEST_PEER else (self.baseline,) if self.baseline else ()
        return (self.contender, *others)

    def limit(self, cores: int) -> str:
        """Return the part of the requirement that applies with this number of cores."""
        limits = (_parse_limit(part) for part in self.requirement.split(", ") if part)
        return ", ".join(limit for limit, only_on in limits if only_on in (None, cores))

    def baseline_in(self, cell: Cell) -> str:
        """Return the baseline, which for ``BEST_PEER`` depends on the rates of the cell."""
        return (cell.best(PEERS) or "") if self.baseline == BEST_PEER else self.baseline

    def values(self, cell: Cell) -> list[float] | None:
        """Return the figure of every round, or None if a contender failed."""
        mine, others = cell.rates.get(self.contender), cell.rates.get(self.baseline_in(cell))
        if mine is None or (self.baseline and others is None):
            return None
        compute = _METRICS.get(self.metric)
        return mine if compute is None else [*map(float, compute(np.array(mine), np.array(others)))]

    def evaluate(self, cell: Cell) -> Verdict:
        """Sum up the rounds of a cell and compare the result with the requirement."""
        limit, values = self.limit(machine.core_count()), self.values(cell)
        return Verdict(self, self.baseline_in(cell), limit, values)


@dataclass(frozen=True)
class Verdict:
    """A measured figure."""

    figure: Figure
    baseline: str
    limit: str
    """What this machine must reach; empty if there is no requirement."""
    values: list[float] | None
    """The figure of every round, or None if a contender failed."""

    @property
    def value(self) -> float | None:
        """The median of the rounds, or the longest time for the metric ``"longest s"``."""
        if self.values is None:
            return None
        summarize = np.max if self.figure.metric == "longest s" else np.median
        return float(summarize(self.values))

    @property
    def is_reached(self) -> bool:
        """Whether the figure was measured and meets the requirement."""
        value = self.value
        return value is not None and all(
            value >= float(bound) if sign == ">=" else value <= float(bound)
            for sign, bound, _ in _LIMIT.findall(self.limit)
        )

    @property
    def outcome(self) -> str:
        """``"reached"``, ``"MISSED"``, ``"failed"``, or nothing if there is no requirement."""
        if self.values is None:
            return "failed"
        if not self.limit:
            return ""
        return "reached" if self.is_reached else "MISSED"


@dataclass(frozen=True)
class Group:
    """A table of ``figures.toml``: figures that are measured and reported together."""

    name: str
    title: str
    legend: str
    rounds: int
    seconds: float
    figures: tuple[Figure, ...]
    needs: str = ""
    """A module without which the group cannot be measured."""
    packages: tuple[str, ...] = ()
    """Distributions whose versions are reported besides those of the contenders."""
    device: str = "cpu"
    """The device of networks."""


def groups() -> list[Group]:
    """Return all groups, in the order of the file."""
    return [
        Group(
            name=name,
            **{
                **table,
                "figures": tuple(
                    figure for row in table["figures"] for figure in _expand(name, *row)
                ),
                "packages": tuple(table.get("packages", ())),
            },
        )
        for name, table in _DATA.items()
    ]


def select(names: Sequence[str]) -> list[tuple[Group, list[Figure]]]:
    """Select figures by name.

    The name of a figure selects that figure; another name, which may contain wildcards, selects the
    figures that match it and those that it is a prefix of, such as a group. No names select all.

    Raises:
        UnknownFigureError: A name selects nothing.
    """
    chosen = []
    matched = set()
    everything = groups()
    known = {figure.name for group in everything for figure in group.figures}
    for group in everything:
        figures = []
        for figure in group.figures:
            hits = {name for name in names if _matches(figure.name, name, name in known)}
            matched |= hits
            if hits or not names:
                figures.append(figure)
        if figures:
            chosen.append((group, figures))
    unknown = [name for name in names if name not in matched]
    if unknown:
        raise UnknownFigureError(
            f"no figure or group is called {unknown[0]!r}; python -m benchmarks list shows all"
        )
    return chosen


def _matches(figure: str, name: str, is_figure: bool) -> bool:
    if is_figure:
        return figure == name
    return figure.startswith(f"{name}/") or fnmatchcase(figure, name)


def _expand(group: str, *row: Any) -> Iterator[Figure]:
    names, rest = row[:4], row[4:]
    for values in product(*(each if isinstance(each, list) else [each] for each in names)):
        yield Figure(group, *values, *rest)


def _parse_limit(text: str) -> tuple[str, int | None]:
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a requirement; expected '>= X' or '<= X [on N cores]'")
    return f"{found[1]} {found[2]}", int(found[3]) if found[3] else None


_METRICS: dict[str, Callable[[Any, Any], Any]] = {
    "ratio": lambda rates, others: rates / others,
    "time ratio": lambda times, others: others / times,
    "ratio per core": lambda rates, others: rates / others / machine.core_count(),
    "million steps/s": lambda rates, _: rates / 1e6,
}
"""How to compute the figure of each round; other metrics are units of the measured values."""
