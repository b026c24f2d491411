"""Shoal behind Stable-Baselines3's interface, as ``shoal.sb3`` gives it."""

from __future__ import annotations

from shoal._bench.contenders.base import Contender, Vector
from shoal._bench.contenders.sb3_vectors import open_vec_env_lockstep
from shoal._bench.workload import Workload

__all__ = ["ShoalSb3Dummy", "ShoalSb3Subproc"]


class _ShoalSb3(Contender):
    packages = ("shoal", "stable-baselines3", "torch", "gymnasium", "numpy")


class ShoalSb3Dummy(_ShoalSb3):
    """``DummyVecEnv``: one environment after the other."""

    name = "shoal-sb3-dummy"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector in this process."""
        from shoal.sb3 import DummyVecEnv

        return open_vec_env_lockstep(DummyVecEnv([workload.make] * num_envs), workload)


class ShoalSb3Subproc(_ShoalSb3):
    """``SubprocVecEnv``: worker processes, as many as there are cores, and the caller."""

    name = "shoal-sb3-subproc"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector and its processes."""
        from shoal.sb3 import SubprocVecEnv

        return open_vec_env_lockstep(SubprocVecEnv([workload.make] * num_envs), workload)
