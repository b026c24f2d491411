"""A plain Python loop over one environment, as the baseline for vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal._bench.contenders.base import SEED, Contender, Lockstep, Vector, action_lists
from shoal._bench.workload import Environment, Workload

__all__ = ["Loop"]


class Loop(Contender):
    """One environment, stepped and reset in a ``for`` loop, ``num_envs`` steps at a time."""

    name = "loop"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the environment."""
        env = workload.make()
        env.reset(seed=SEED)
        batches = action_lists(workload, num_envs)
        return Lockstep(_SingleEnv(env).step_all, batches, env.close)


class _SingleEnv:
    """Steps one environment with many actions.

    A reset counts as a step, as in a vector that resets in the step after an episode's end, so that
    rates are comparable.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._done = False

    def step_all(self, actions: Sequence[Any]) -> None:
        env, done = self._env, self._done
        for action in actions:
            if done:
                env.reset()
                done = False
            else:
                _, _, terminated, truncated, _ = env.step(action)
                done = terminated or truncated
        self._done = done
