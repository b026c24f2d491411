"""The plain Python loop over one environment: what any vector must be worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal._bench.contenders.base import SEED, Contender, Lockstep, Vector, action_lists
from shoal._bench.workload import Environment, Workload

__all__ = ["Loop"]


class Loop(Contender):
    """One environment, stepped and reset in a ``for`` loop, ``num_envs`` turns at a time."""

    name = "loop"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the one environment."""
        env = workload.make()
        env.reset(seed=SEED)
        turns = action_lists(workload, num_envs)
        return Lockstep(_Turns(env).take, turns, env.close)


class _Turns:
    """Takes turns with one environment.

    A reset is a turn of its own, as it is in a vector that resets in the step after an episode's
    end, so that rates count the same thing.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._over = False

    def take(self, actions: Sequence[Any]) -> None:
        env, over = self._env, self._over
        for action in actions:
            if over:
                env.reset()
                over = False
            else:
                _, _, terminated, truncated, _ = env.step(action)
                over = terminated or truncated
        self._over = over
