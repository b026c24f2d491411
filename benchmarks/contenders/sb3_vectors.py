"""Stable-Baselines3's vectors, in an environment without Shoal."""

from __future__ import annotations

from benchmarks.peers import InPeer
from shoal._bench.contenders import sb3_vectors
from shoal._bench.contenders.base import Contender

__all__ = ["Sb3Dummy", "Sb3Subproc"]


class _InPeer(InPeer, Contender):
    peer = "sb3"

    def supports(self, workload: str) -> bool:
        """All but nested observation spaces."""
        return workload != "dict"


class Sb3Dummy(_InPeer, sb3_vectors.Sb3Dummy):
    """``DummyVecEnv``: one environment after the other."""


class Sb3Subproc(_InPeer, sb3_vectors.Sb3Subproc):
    """``SubprocVecEnv``: a process for each environment."""
