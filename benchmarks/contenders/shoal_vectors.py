"""Shoal, as ``shoal.make`` gives it."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.contenders.base import SEED, Contender, Vector, action_batches
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
        envs.reset(seed=SEED)
        return Vector(envs.step, action_batches(workload, num_envs), envs.close)


class ShoalView(Shoal):
    """``shoal.make(copy=False)``: batches are views of buffers that rotate."""

    name = "shoal-view"
    copy = False
