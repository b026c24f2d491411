"""Stacks of the most recent frames of each slot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal import _native

__all__ = ["FrameRing"]

Array = npt.NDArray[Any]


class FrameRing:
    """A ring buffer of the most recent frames of each slot.

    Stacks are returned as new arrays.

    Args:
        num_frames: Number of frames in a stack.
        num_envs: Number of slots.
        shape: The shape of one frame.
        dtype: The dtype of a frame.
        axis: The axis along which frames are concatenated.

    Example:
        >>> ring = FrameRing(3, num_envs=1, shape=(2,), dtype=np.int64, axis=0)
        >>> ring.push(np.array([[1, 2]]))
        >>> ring.push(np.array([[3, 4]]))
        >>> ring.stacks()
        array([[0, 0, 1, 2, 3, 4]])
        >>> ring.stack_with(0, np.array([5, 6]))
        array([1, 2, 3, 4, 5, 6])
    """

    def __init__(
        self,
        num_frames: int,
        num_envs: int,
        shape: tuple[int, ...],
        dtype: npt.DTypeLike,
        axis: int,
    ) -> None:
        axis %= len(shape)
        self.frames: Array = np.zeros((num_frames, num_envs, *shape), dtype)
        self.stacked_shape = (*shape[:axis], num_frames * shape[axis], *shape[axis + 1 :])
        self._oldest = 0
        self._axis = axis
        self._chunk = math.prod(shape[axis:])

    def __len__(self) -> int:
        return len(self.frames)

    def push(self, frames: Array) -> None:
        """Add the newest frame of each slot, replacing the oldest."""
        self.frames[self._oldest] = frames
        self._oldest = (self._oldest + 1) % len(self)

    def clear(self, slots: Any = slice(None)) -> None:
        """Fill the stacks of slots, all by default, with zeros."""
        self.frames[:, slots] = 0

    def fill(self, slots: Any, frames: Array) -> None:
        """Fill the stack of each of these slots with one frame."""
        self.frames[:, slots] = frames

    def replace_newest(self, slots: Any, frames: Array) -> None:
        """Replace the newest frames of these slots."""
        self.frames[self._oldest - 1, slots] = frames

    def stacks(self) -> Array:
        """Return the stack of each slot, the oldest frame first."""
        result = np.empty((self.frames.shape[1], *self.stacked_shape), self.frames.dtype)
        if result.size:
            _native.stack_frames(self.frames, self._oldest, self._chunk, result)
        return result

    def stack_with(self, slot: int, frame: Array) -> Array:
        """Return the stack that a slot would have after one more frame."""
        order = (self._oldest + 1 + np.arange(len(self) - 1)) % len(self)
        newest = [self.frames[index, slot] for index in order]
        stack: Array = np.concatenate([*newest, np.asarray(frame)], axis=self._axis)
        return stack

    def ordered(self) -> Array:
        """Return all frames, the oldest first, for :meth:`restore`."""
        frames: Array = np.roll(self.frames, -self._oldest, axis=0)
        return frames

    def restore(self, frames: Array) -> None:
        """Replace all frames by those that :meth:`ordered` returned."""
        if frames.shape != self.frames.shape or frames.dtype != self.frames.dtype:
            raise ValueError(
                f"expected frames of shape {self.frames.shape} and dtype {self.frames.dtype}, got "
                f"shape {frames.shape} and dtype {frames.dtype}"
            )
        self.frames[:] = frames
        self._oldest = 0
