"""The Gymnasium frontend of kernels, with access to their states."""

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


# Gymnasium's class is a direct base because skrl recognises vectors by their direct bases.
class KernelVectorEnv(VectorEnv, gymnasium.vector.VectorEnv[Any, Any, Arrays]):
    """A vector whose environments are slots of a kernel.

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
        """The states of all slots: a structured array, which can be read and written."""
        return self._kernel_pool.state

    def save(self, slots: SlotChoice = None) -> npt.NDArray[np.uint8]:
        """Return a snapshot of slots, a row of bytes for each: state, generator and episode.

        Parameters are not included.
        """
        return self._kernel_pool.save(slots)

    def restore(self, saved: npt.NDArray[np.uint8], slots: SlotChoice = None) -> None:
        """Restore slots from a snapshot; the next step continues from there."""
        self._kernel_pool.restore(saved, slots)

    def render_tiled(
        self, slots: SlotChoice = None, columns: int | None = None
    ) -> npt.NDArray[np.uint8]:
        """Render slots as the tiles of one image.

        Args:
            slots: The slots to render; all by default.
            columns: Number of tiles in a row; by default, the grid is about square.
        """
        if columns is not None and columns < 1:
            raise ValueError(f"columns must be a positive number or None, got {columns}")
        images = self._kernel_pool.render(slots)
        count, height, width, channels = images.shape
        num_columns = ceil(sqrt(count)) if columns is None else columns
        num_rows = ceil(count / num_columns)
        tiled = np.zeros((num_rows * num_columns, height, width, channels), np.uint8)
        tiled[:count] = images
        tiled = tiled.reshape(num_rows, num_columns, height, width, channels).swapaxes(1, 2)
        return tiled.reshape(num_rows * height, num_columns * width, channels)
