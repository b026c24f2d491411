"""The measurements of a run, and statistics of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "SUBJECT",
    "Cell",
    "Report",
    "Summary",
    "by_workload",
    "contenders_of",
    "paired_ratio",
    "summarize",
]

SUBJECT = "shoal"
"""The contender that the others are compared with."""


class Summary(NamedTuple):
    """The median over a cell's rounds, and the quartiles."""

    median: float
    lower: float
    upper: float

    @property
    def spread(self) -> float:
        """Half the interquartile range, as a fraction of the median."""
        return (self.upper - self.lower) / 2 / self.median


def summarize(values: Sequence[float]) -> Summary:
    """Return the median and quartiles of the rounds of a measurement."""
    lower, median, upper = np.percentile(values, [25, 50, 75])
    return Summary(float(median), float(lower), float(upper))


def paired_ratio(rates: Sequence[float], others: Sequence[float]) -> float:
    """Return the median over paired rounds of ``rates`` divided by ``others``.

    Both rates of a round were measured within a second or two, so most of the machine's changes in
    speed cancel out.
    """
    if len(rates) != len(others):
        raise ValueError(f"{len(rates)} rounds cannot be paired with {len(others)}")
    return float(np.median(np.divide(rates, others)))


@dataclass
class Cell:
    """One workload at one number of environments.

    ``contenders`` lists those that support the workload. Each is in exactly one of three dicts: in
    ``rates`` with its environment steps per second in every round, in ``failures`` with the reason,
    or in ``same_as`` with the name of another contender, if it steps in the same way and so was not
    measured. ``notes`` describe how some of them step the environments.
    """

    workload: str
    num_envs: int
    contenders: list[str]
    rates: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    same_as: dict[str, str] = field(default_factory=dict)

    def ratio(self, other: str, subject: str = SUBJECT) -> float | None:
        """Return one contender's rate divided by another's; None if one was not measured."""
        if subject not in self.rates or other not in self.rates:
            return None
        return paired_ratio(self.rates[subject], self.rates[other])

    def best(self, names: Iterable[str]) -> str | None:
        """Return the contender with the highest median; None if none of them was measured."""
        medians = {name: summarize(self.rates[name]).median for name in names if name in self.rates}
        return max(medians, key=medians.__getitem__, default=None)

    def as_json(self) -> dict[str, Any]:
        """Return every round's value and the statistics as plain data."""
        measured = {
            name: {
                "rates": rates,
                **summarize(rates)._asdict(),
                f"{SUBJECT}_ratio": self.ratio(name),
                **({"note": self.notes[name]} if name in self.notes else {}),
            }
            for name, rates in self.rates.items()
        }
        failed = {name: {"failure": reason} for name, reason in self.failures.items()}
        same_as = {name: {"same_as": other} for name, other in self.same_as.items()}
        return {
            "workload": self.workload,
            "num_envs": self.num_envs,
            "contenders": measured | failed | same_as,
        }


def contenders_of(cells: Sequence[Cell]) -> list[str]:
    """Return the contenders in any of these cells, in display order."""
    return list(dict.fromkeys(name for cell in cells for name in cell.contenders))


def by_workload(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Group cells by their workload."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.workload, []).append(cell)
    return groups


@dataclass
class Report:
    """A run: the machine, the settings, the versions, and all cells."""

    machine: dict[str, Any]
    settings: dict[str, Any]
    versions: dict[str, dict[str, str]]
    cells: list[Cell]

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "machine": self.machine,
            "settings": self.settings,
            "versions": self.versions,
            "cells": [cell.as_json() for cell in self.cells],
        }
