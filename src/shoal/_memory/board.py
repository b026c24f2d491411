"""The memory of a board, on which a caller and its workers leave word for each other."""

from __future__ import annotations

import numpy as np

from shoal import _native
from shoal._memory.arena import Arena, Field

__all__ = ["BoardMemory"]


class BoardMemory:
    """Room for the tasks and outcomes of so many workers.

    Args:
        workers: How many lanes the board has.
        slots: How many slots the vector has; each can be in a lane once, besides messages.
        shared: Whether other processes can attach, by ``descriptor``.
        descriptor: Attach to the board of another process instead of making one.
    """

    def __init__(
        self, workers: int, slots: int, *, shared: bool = False, descriptor: int | None = None
    ) -> None:
        self._workers = workers
        self._capacity = 1 << (2 * slots + 64).bit_length()
        fields = {
            "board": Field(np.dtype(np.uint8), (_native.Board.bytes(workers, self._capacity),))
        }
        self._arena = Arena(fields, 1, shared=shared, descriptor=descriptor)

    @property
    def descriptor(self) -> int | None:
        """By which other processes attach, where the board is shared."""
        return self._arena.descriptor

    def board(self, may_spin: bool, pipes: list[list[int]]) -> _native.Board:
        """The board itself, for one side of it.

        Args:
            may_spin: Whether there are cores enough to spin for a moment before sleeping.
            pipes: Empty for a doorbell of futexes; else the ends for reading and for writing of
                the workers' pipes, and of the caller's.
        """
        memory = self._arena["board"].reshape(-1)
        return _native.Board(memory, self._workers, self._capacity, may_spin, pipes)

    def close(self) -> None:
        """Give back the descriptor; the memory lives as long as someone looks at it."""
        self._arena.close()
