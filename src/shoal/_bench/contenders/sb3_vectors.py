"""Stable-Baselines3's vectors."""

from __future__ import annotations

from typing import Any

from shoal._bench.contenders.base import SEED, Contender, Lockstep, Vector, action_batches
from shoal._bench.workload import Workload

__all__ = ["Sb3Dummy", "Sb3Subproc", "open_vec_env_lockstep"]


class _Sb3(Contender):
    packages = ("stable-baselines3", "torch", "gymnasium", "numpy")


class Sb3Dummy(_Sb3):
    """``DummyVecEnv``: steps one environment after the other."""

    name = "sb3-dummy"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector in this process."""
        from stable_baselines3.common.vec_env import DummyVecEnv

        return open_vec_env_lockstep(DummyVecEnv([workload.make] * num_envs), workload)


class Sb3Subproc(_Sb3):
    """``SubprocVecEnv``: a process for each environment."""

    name = "sb3-subproc"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its processes."""
        from stable_baselines3.common.vec_env import SubprocVecEnv

        # A forked process is as fast as a spawned one, and does not import torch again.
        envs = SubprocVecEnv([workload.make] * num_envs, start_method="fork")
        return open_vec_env_lockstep(envs, workload)


def open_vec_env_lockstep(envs: Any, workload: Workload) -> Vector:
    """Reset ``envs``, a ``VecEnv`` of either library, and prepare it for stepping."""
    envs.seed(SEED)
    envs.reset()
    return Lockstep(envs.step, action_batches(workload, envs.num_envs), envs.close)
