"""What a run has measured, and the numbers that sum it up."""

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
    """The median of a cell's rounds, and the quartiles around it."""

    median: float
    lower: float
    upper: float

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        return (self.upper - self.lower) / 2 / self.median


def summarize(values: Sequence[float]) -> Summary:
    """Sum up the rounds of a measurement."""
    lower, median, upper = np.percentile(values, [25, 50, 75])
    return Summary(float(median), float(lower), float(upper))


def paired_ratio(rates: Sequence[float], others: Sequence[float]) -> float:
    """How many times faster ``rates`` are than ``others``, as the median over paired rounds.

    The two of a round were measured within the same second or two, so that most of a machine's
    changing mood cancels out.
    """
    if len(rates) != len(others):
        raise ValueError(f"{len(rates)} rounds cannot be paired with {len(others)}")
    return float(np.median(np.divide(rates, others)))


@dataclass
class Cell:
    """One workload at one number of environments.

    Each of ``contenders``, those that support the workload, is either in ``rates``, with its
    environment steps per second in every round, or in ``failures``, with the reason, or, where it
    was not measured since it steps as another one does, in ``same_as``, with that one's name.
    ``notes`` tell how some of them stepped the environments.
    """

    workload: str
    num_envs: int
    contenders: list[str]
    rates: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    same_as: dict[str, str] = field(default_factory=dict)

    def ratio(self, other: str, subject: str = SUBJECT) -> float | None:
        """One contender's rate over another's, where both were measured."""
        if subject not in self.rates or other not in self.rates:
            return None
        return paired_ratio(self.rates[subject], self.rates[other])

    def best(self, names: Iterable[str]) -> str | None:
        """Of these contenders, the one with the highest median; none where none was measured."""
        medians = {name: summarize(self.rates[name]).median for name in names if name in self.rates}
        return max(medians, key=medians.__getitem__, default=None)

    def as_json(self) -> dict[str, Any]:
        """Give every round's value and their summary, as plain data."""
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
    """List the contenders that are in any of these cells, in the order in which to show them."""
    return list(dict.fromkeys(name for cell in cells for name in cell.contenders))


def by_workload(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Sort cells by their workload."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.workload, []).append(cell)
    return groups


@dataclass
class Report:
    """A whole run: where, how and with which versions, and all its cells."""

    machine: dict[str, Any]
    settings: dict[str, Any]
    versions: dict[str, dict[str, str]]
    cells: list[Cell]

    def as_json(self) -> dict[str, Any]:
        """Give the whole report as plain data."""
        return {
            "machine": self.machine,
            "settings": self.settings,
            "versions": self.versions,
            "cells": [cell.as_json() for cell in self.cells],
        }
