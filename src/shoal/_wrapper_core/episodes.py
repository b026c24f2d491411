"""Return and length of each slot's current episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["EpisodeTotals"]


class EpisodeTotals:
    """Accumulates rewards and steps of each slot.

    Args:
        num_envs: Number of slots.
        return_dtype: The dtype of the returns.
        length_dtype: The dtype of the lengths.
    """

    def __init__(
        self,
        num_envs: int,
        return_dtype: npt.DTypeLike = np.float64,
        length_dtype: npt.DTypeLike = np.int64,
    ) -> None:
        self.returns: npt.NDArray[Any] = np.zeros(num_envs, return_dtype)
        self.lengths: npt.NDArray[Any] = np.zeros(num_envs, length_dtype)

    def add(self, rewards: npt.NDArray[Any], counted: npt.NDArray[np.bool_] | None = None) -> None:
        """Add a step of every slot, or of those in the mask ``counted``."""
        if counted is None:
            self.returns += rewards
            self.lengths += 1
        else:
            self.returns[counted] += rewards[counted]
            self.lengths[counted] += 1

    def clear(self, slots: Any = slice(None)) -> None:
        """Start new episodes for slots, all by default."""
        self.returns[slots] = 0
        self.lengths[slots] = 0
