"""Stable-Baselines3's vectors, in a peer environment."""

from __future__ import annotations

from benchmarks.peers import InPeer
from shoal._bench.contenders import sb3_vectors
from shoal._bench.contenders.base import Contender

__all__ = ["Sb3Dummy", "Sb3Subproc"]


class _InPeer(InPeer, Contender):
    peer = "sb3"

    def supports(self, workload: str) -> bool:
        """Return whether the observation space is not nested."""
        return workload != "dict"


class Sb3Dummy(_InPeer, sb3_vectors.Sb3Dummy):
    """``DummyVecEnv``: environments in the calling process."""


class Sb3Subproc(_InPeer, sb3_vectors.Sb3Subproc):
    """``SubprocVecEnv``: one process per environment."""
