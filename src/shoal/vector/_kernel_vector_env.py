"""The Gymnasium frontend to kernels, which can do a little more than others."""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from shoal.pools import KernelPool
from shoal.pools._base import SlotChoice
from shoal.pools._forwarding import find_pool
from shoal.vector._pool_vector_env import Arrays, VectorEnv

__all__ = ["KernelVectorEnv"]


# Gymnasium's class is named again for skrl, which recognises vectors by their direct bases.
class KernelVectorEnv(VectorEnv, gymnasium.vector.VectorEnv[Any, Any, Arrays]):
    """Slots of a kernel behind Gymnasium's vector interface.

    Example:
        >>> import shoal
        >>> with shoal.make("CartPole-v1", num_envs=3) as envs:
        ...     observations, infos = envs.reset(seed=42)
        ...     envs.state["theta"][1] = 0.1
        ...     before = envs.save()
        ...     first = envs.step([1, 0, 1])
        ...     envs.restore(before)
        ...     again = envs.step([1, 0, 1])
        >>> bool((first[0] == again[0]).all())
        True
    """

    @property
    def _kernel_pool(self) -> KernelPool:
        return find_pool(self._pool, KernelPool)

    def __repr__(self) -> str:
        name = self._kernel_pool.kernel.name if self.spec is None else self.spec.id
        return f"{type(self).__name__}({name}, num_envs={self.num_envs})"

    @property
    def state(self) -> npt.NDArray[Any]:
        """The states of all slots: an array of records, which can be read and written."""
        return self._kernel_pool.state

    def save(self, slots: SlotChoice = None) -> npt.NDArray[np.uint8]:
        """Everything about these slots, a row of bytes for each: state, randomness, episode.

        Parameters are no part of it.
        """
        return self._kernel_pool.save(slots)

    def restore(self, saved: npt.NDArray[np.uint8], slots: SlotChoice = None) -> None:
        """Put slots back to what they were; the next step goes on from there."""
        self._kernel_pool.restore(saved, slots)

    def render_tiled(
        self, slots: SlotChoice = None, columns: int | None = None
    ) -> npt.NDArray[np.uint8]:
        """One picture with those of these slots side by side.

        Args:
            slots: Which ones; all by default.
            columns: How many in a row; by default about as many as there are rows.
        """
        if columns is not None and columns < 1:
            raise ValueError(f"columns must be a positive number or None, got {columns}")
        pictures = self._kernel_pool.render(slots)
        count, height, width, channels = pictures.shape
        across = ceil(sqrt(count)) if columns is None else columns
        down = ceil(count / across)
        tiled = np.zeros((down * across, height, width, channels), np.uint8)
        tiled[:count] = pictures
        tiled = tiled.reshape(down, across, height, width, channels).swapaxes(1, 2)
        return tiled.reshape(down * height, across * width, channels)
