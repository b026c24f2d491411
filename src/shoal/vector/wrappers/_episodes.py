"""Where episodes end and begin, in every autoreset mode."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium.vector
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from shoal._types import CRASHED
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector.wrappers._base import SlotIndex, autoreset_mode_of

__all__ = ["EpisodeBounds", "Passed"]

Mask = npt.NDArray[np.bool_]


class Passed(NamedTuple):
    """What a step has meant for the episode of each slot."""

    reset: Mask
    """The step has only reset the slot, so its reward does not count."""
    ended: Mask
    """The episode has ended."""
    restarted: Mask
    """The episode has ended, and the observation is the first one of the next episode."""


class EpisodeBounds:
    """Follows the episodes of a vector's slots.

    Args:
        env: The vector.
    """

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        self.same_step = autoreset_mode_of(env) is AutoresetMode.SAME_STEP
        # Others may give an info of the same name another meaning.
        base = env.unwrapped
        self._restarts = isinstance(base, VectorEnv) and base.pool.restarts
        self.over: Mask = np.zeros(env.num_envs, np.bool_)
        """The slots whose episode has ended, and which were not reset since."""
        self._none: Mask = np.zeros(env.num_envs, np.bool_)

    def begin(self, slots: SlotIndex) -> None:
        """These slots were reset."""
        self.over[slots] = False

    def step(self, terminated: Any, truncated: Any, infos: Any) -> Passed:
        """All slots were stepped, with these results."""
        reset, ended = self.over, np.logical_or(terminated, truncated)
        if self.same_step:
            return Passed(self._none, ended, ended)
        crashed = self._crashed(infos) if self._restarts else None
        if crashed is None:
            self.over = ended.copy()
            return Passed(reset, ended, self._none)
        restarted = ended & ~np.asarray(terminated) & crashed
        self.over = ended & ~restarted
        return Passed(reset, ended, restarted)

    def _crashed(self, infos: Any) -> Mask | None:
        """The slots that have lost their environment, and got a new one in the same step."""
        if isinstance(infos, list):
            return np.array([info.get(CRASHED) is True for info in infos])
        if CRASHED in infos:
            return np.array([bool(value) for value in infos[CRASHED]])
        return None
