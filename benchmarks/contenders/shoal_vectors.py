"""Shoal, as ``shoal.make`` gives it."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.contenders.base import Contender, Vector, started
from benchmarks.workloads import Workload

__all__ = ["Shoal", "ShoalView"]


class Shoal(Contender):
    """``shoal.make`` with its defaults: batches are new arrays."""

    name = "shoal"
    packages = ("shoal", "gymnasium", "numpy")
    copy: ClassVar[bool] = True

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector."""
        import shoal

        envs = shoal.make(workload.make, num_envs=num_envs, copy=self.copy)
        return started(envs, workload)


class ShoalView(Shoal):
    """``shoal.make(copy=False)``: batches are views of buffers that rotate."""

    name = "shoal-view"
    copy = False
