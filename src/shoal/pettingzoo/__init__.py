"""Vectors of PettingZoo parallel environments, on every pool, and hockey as such an environment.

    >>> from shoal.pettingzoo import make
    >>> envs = make("shoal/Hockey-v0", num_envs=1000)          # or: make(parallel_env, 8, ...)
    >>> observations, infos = envs.reset(seed=1)
    >>> observations.shape, int(infos["alive"].sum())
    ((2000, 18), 2000)
    >>> envs.close()

There are two shapes. ``"batch"`` is a ``gymnasium.vector.VectorEnv`` in which each agent of each
environment is a slot. It returns both flags, Gymnasium's infos and a mask of living agents.
``"dict"`` has one batch per agent, so that agents may have different spaces. Both accept the
options of ``shoal.make``. :mod:`shoal.pettingzoo.hockey_v0` is hockey with PettingZoo's interface.
"""

from shoal.pettingzoo._agent_vector import AgentVectorEnv
from shoal.pettingzoo._make import make
from shoal.pettingzoo._parallel_vector import AgentBatch, ParallelVectorEnv
from shoal.pettingzoo._team_env import TeamEnv

__all__ = ["AgentBatch", "AgentVectorEnv", "ParallelVectorEnv", "TeamEnv", "make"]
