"""Shoal with the interface of Stable-Baselines3: ``shoal.sb3``."""

from __future__ import annotations

from shoal._bench.contenders.base import Contender, Vector
from shoal._bench.contenders.sb3_vectors import open_vec_env_lockstep
from shoal._bench.workload import Workload

__all__ = ["ShoalSb3Dummy", "ShoalSb3Subproc"]


class _ShoalSb3(Contender):
    packages = ("shoal", "stable-baselines3", "torch", "gymnasium", "numpy")


class ShoalSb3Dummy(_ShoalSb3):
    """``DummyVecEnv``: environments in the calling process."""

    name = "shoal-sb3-dummy"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector in this process."""
        from shoal.sb3 import DummyVecEnv

        return open_vec_env_lockstep(DummyVecEnv([workload.make] * num_envs), workload)


class ShoalSb3Subproc(_ShoalSb3):
    """``SubprocVecEnv``: worker processes and the caller, together as many as cores."""

    name = "shoal-sb3-subproc"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its processes."""
        from shoal.sb3 import SubprocVecEnv

        return open_vec_env_lockstep(SubprocVecEnv([workload.make] * num_envs), workload)
