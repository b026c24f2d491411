"""Memory for the latest frames of a game."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["FrameWindow"]

Frames = npt.NDArray[np.uint8]


class FrameWindow:
    """A frame stack as a sliding window over contiguous memory.

    Each frame is written once and the window moves on, so frames are not shifted in every step.
    Only at the end of the memory are the frames in the window copied to the beginning.

    >>> window = FrameWindow(2, (3,))
    >>> window.begin()[:] = 1
    >>> window.next()[:] = 2
    >>> window.stack
    array([[1, 1, 1],
           [2, 2, 2]], dtype=uint8)
    """

    def __init__(self, length: int, shape: tuple[int, ...]) -> None:
        self._length = length
        self._memory = np.zeros((2 * length + 1, *shape), np.uint8)
        self._end = length

    def begin(self) -> Frames:
        """Start an episode; return the memory of its first frame. Earlier frames become zero."""
        self._end = self._length
        self._memory[: self._end - 1] = 0
        frame: Frames = self._memory[self._end - 1]
        return frame

    def next(self) -> Frames:
        """Move the window on; return the memory of the next frame."""
        if self._end == len(self._memory):
            kept = self._length - 1
            self._memory[:kept] = self._memory[self._end - kept :]
            self._end = kept
        self._end += 1
        frame: Frames = self._memory[self._end - 1]
        return frame

    def repeat_first(self) -> None:
        """Fill the stack with the first frame of the episode."""
        self._memory[: self._end - 1] = self._memory[self._end - 1]

    @property
    def previous(self) -> Frames:
        """The frame before the latest one."""
        # With a stack of one frame, the index may be -1: the frame is then the last in memory.
        frame: Frames = self._memory[self._end - 2]
        return frame

    @property
    def stack(self) -> Frames:
        """The frames in the window, oldest first; a view of the memory."""
        return self._memory[self._end - self._length : self._end]

    @stack.setter
    def stack(self, frames: Frames) -> None:
        self._end = self._length
        self._memory[: self._end] = frames
