"""The memory of a board, the rings of tasks and outcomes between a caller and its workers."""

from __future__ import annotations

import numpy as np

from shoal import _native
from shoal._memory.arena import Arena, Field

__all__ = ["BoardMemory"]


class BoardMemory:
    """Memory for the tasks and outcomes of a number of workers.

    Args:
        workers: Number of lanes.
        slots: Number of slots of the vector. A lane holds at most one entry per slot, and messages.
        shared: Whether other processes can attach by ``descriptor``.
        descriptor: Descriptor of an existing board to attach to.
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
        """The descriptor by which other processes attach, or None for private memory."""
        return self._arena.descriptor

    def board(self, may_spin: bool, pipes: list[list[int]]) -> _native.Board:
        """Return the native board, for the caller or a worker.

        Args:
            may_spin: Whether there are enough cores to spin for a moment before sleeping.
            pipes: Empty for a doorbell of futexes; otherwise the read and write ends of the pipes
                of the workers and of the caller.
        """
        memory = self._arena["board"].reshape(-1)
        return _native.Board(memory, self._workers, self._capacity, may_spin, pipes)

    def close(self) -> None:
        """Close the descriptor; the memory lives as long as it is referenced."""
        self._arena.close()
