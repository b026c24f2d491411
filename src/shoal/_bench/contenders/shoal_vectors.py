"""Shoal's vectors, as created by ``shoal.make``."""

from __future__ import annotations

from typing import Any

from shoal._bench.contenders.base import Contender, Vector, open_lockstep
from shoal._bench.workload import Workload

__all__ = ["PACKAGES", "Shoal", "plan_summary"]

PACKAGES = ("shoal", "gymnasium", "numpy")


class Shoal(Contender):
    """``shoal.make`` with these options."""

    packages = PACKAGES

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self.options = options

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector; the note is its plan."""
        envs = workload.vector(num_envs, **self.options)
        vector = open_lockstep(envs, workload)
        vector.note = str(envs.plan)
        return vector


def plan_summary(note: str) -> str:
    """Return how a plan, given as text, steps the slots, without the reason.

    >>> plan_summary("8 slots, 1 worker process and the caller with 4 slots: requested")
    '8 slots, 1 worker process and the caller with 4 slots'
    """
    return note.partition(": ")[0]
