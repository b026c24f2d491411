"""The newest frames of a game."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["FrameWindow"]

Frames = npt.NDArray[np.uint8]


class FrameWindow:
    """Frames side by side in memory, so that a stack of the newest ones is one piece.

    Every frame is written once and stays where it is: the stack is a window that moves on. Only at
    the end of the memory are the frames that are still in it carried over to the beginning.

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
        """Where to write the first frame of an episode; those before it are black."""
        self._end = self._length
        self._memory[: self._end - 1] = 0
        frame: Frames = self._memory[self._end - 1]
        return frame

    def next(self) -> Frames:
        """Where to write the next frame."""
        if self._end == len(self._memory):
            kept = self._length - 1
            self._memory[:kept] = self._memory[self._end - kept :]
            self._end = kept
        self._end += 1
        frame: Frames = self._memory[self._end - 1]
        return frame

    def repeat_first(self) -> None:
        """Let the first frame of an episode stand for those before it as well."""
        self._memory[: self._end - 1] = self._memory[self._end - 1]

    @property
    def previous(self) -> Frames:
        """The frame before the newest one."""
        # With a stack of one frame it may be the last in memory, which -1 happens to mean.
        frame: Frames = self._memory[self._end - 2]
        return frame

    @property
    def stack(self) -> Frames:
        """The newest frames, the oldest of them first: a view of the memory."""
        return self._memory[self._end - self._length : self._end]

    @stack.setter
    def stack(self, frames: Frames) -> None:
        self._end = self._length
        self._memory[: self._end] = frames
