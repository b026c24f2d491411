"""A vector of prepared batches, to measure wrappers around it."""

from __future__ import annotations

from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from shoal._bench.contenders.base import SEED

__all__ = ["EPISODE_STEPS", "PreparedVecEnv"]

EPISODE_STEPS = 200
"""The length of all episodes; the slots end one after the other."""

_BATCHES = 8

Array = npt.NDArray[Any]
Infos = list[dict[str, Any]]


class _Endings(NamedTuple):
    """The endings of one step, which repeat after ``EPISODE_STEPS`` steps."""

    dones: Array
    ended: list[int]


class PreparedVecEnv:
    """Returns prepared observations and rewards in turn, without copying them.

    It has the part of Stable-Baselines3's ``VecEnv`` that wrappers use. Callers must not modify
    the arrays; they may modify the infos of ended episodes.

    Args:
        space: The space of one observation.
        num_envs: The number of slots.
    """

    render_mode = None

    def __init__(self, space: Box, num_envs: int) -> None:
        self.num_envs = num_envs
        self.observation_space = space
        self.action_space = Discrete(2)
        self.reset_infos: Infos = [{} for _ in range(num_envs)]
        space.seed(SEED)
        random = np.random.default_rng(SEED)
        self._batches = cycle(
            [
                (
                    np.stack([space.sample() for _ in range(num_envs)]),
                    random.standard_normal(num_envs, dtype=np.float32),
                )
                for _ in range(_BATCHES)
            ]
        )
        self._endings = cycle(_endings(num_envs))
        self._infos: Infos = [{"TimeLimit.truncated": False} for _ in range(num_envs)]

    def get_attr(self, name: str, indices: object = None) -> list[Any]:  # noqa: ARG002
        """Return an attribute of the vector for every slot."""
        return [getattr(self, name)] * self.num_envs

    def reset(self) -> Array:
        """Return the next observations."""
        return next(self._batches)[0]

    def step(self, actions: Array) -> tuple[Array, Array, Array, Infos]:
        """Return the next observations, rewards, dones and infos."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Array) -> None:
        """Do nothing."""

    def step_wait(self) -> tuple[Array, Array, Array, Infos]:
        """Return the next observations, rewards, dones and infos."""
        observations, rewards = next(self._batches)
        dones, ended = next(self._endings)
        infos = self._infos.copy()
        for slot in ended:
            infos[slot] = {
                "TimeLimit.truncated": False,
                "terminal_observation": observations[slot],
            }
        return observations, rewards, dones, infos


def _endings(num_envs: int) -> list[_Endings]:
    last_steps = np.arange(num_envs) * EPISODE_STEPS // num_envs
    dones = [last_steps == step for step in range(EPISODE_STEPS)]
    return [_Endings(each, np.flatnonzero(each).tolist()) for each in dones]
