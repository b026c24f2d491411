"""Return and length of the episode that every slot is in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["EpisodeTotals"]


class EpisodeTotals:
    """Adds up rewards and steps of every slot until its episode ends.

    Args:
        num_envs: How many slots there are.
        return_dtype: What returns are added up in.
        length_dtype: What steps are counted in.
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
        """Add a step of every slot, or of those that are ``counted``."""
        if counted is None:
            self.returns += rewards
            self.lengths += 1
        else:
            self.returns[counted] += rewards[counted]
            self.lengths[counted] += 1

    def clear(self, slots: Any = slice(None)) -> None:
        """Begin the episodes of these slots, all of them by default."""
        self.returns[slots] = 0
        self.lengths[slots] = 0
