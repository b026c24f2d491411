"""Detection of the starts and ends of episodes, in every autoreset mode."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium.vector
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from shoal._types import CRASHED
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector.wrappers._base import SlotIndex, autoreset_mode_of

__all__ = ["EpisodeTracker", "SlotTransitions"]

Mask = npt.NDArray[np.bool_]


class SlotTransitions(NamedTuple):
    """The effect of a step on the episode of each slot."""

    reset: Mask
    """The step only reset the slot, so its reward does not count."""
    ended: Mask
    """The episode has ended."""
    restarted: Mask
    """The episode has ended, and the observation is the first of the next episode."""


class EpisodeTracker:
    """Tracks the episodes of a vector's slots.

    Args:
        env: The vector.
    """

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        self.same_step = autoreset_mode_of(env) is AutoresetMode.SAME_STEP
        # In other libraries an info "crashed" may have another meaning.
        base = env.unwrapped
        self._restarts = isinstance(base, VectorEnv) and base.pool.restarts
        self.finished: Mask = np.zeros(env.num_envs, np.bool_)
        """The slots whose episode has ended and that were not reset since."""
        self._none: Mask = np.zeros(env.num_envs, np.bool_)

    def start(self, slots: SlotIndex) -> None:
        """Record that slots were reset."""
        self.finished[slots] = False

    def step(self, terminated: Any, truncated: Any, infos: Any) -> SlotTransitions:
        """Record a step of all slots."""
        reset, ended = self.finished, np.logical_or(terminated, truncated)
        if self.same_step:
            return SlotTransitions(self._none, ended, ended)
        crashed = self._crashed(infos) if self._restarts else None
        if crashed is None:
            self.finished = ended.copy()
            return SlotTransitions(reset, ended, self._none)
        restarted = ended & ~np.asarray(terminated) & crashed
        self.finished = ended & ~restarted
        return SlotTransitions(reset, ended, restarted)

    def _crashed(self, infos: Any) -> Mask | None:
        """Return the slots whose environment crashed and was replaced in this step."""
        if isinstance(infos, list):
            return np.array([info.get(CRASHED) is True for info in infos])
        if CRASHED in infos:
            return np.array([bool(value) for value in infos[CRASHED]])
        return None
