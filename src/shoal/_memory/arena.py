"""The arena: one block of memory with all columns of a vector.

A column has one row per slot. Columns start at multiples of 64 bytes, so that no two share a cache
line. The block is private memory or anonymous shared memory. A worker attaches by a file descriptor
that it receives from its parent, and the operating system frees the memory with the last process.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ALIGNMENT", "Arena", "Field"]

ALIGNMENT = 64


@dataclass(frozen=True)
class Field:
    """The dtype and shape of one row of a column."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Size of one row in bytes."""
        return int(self.dtype.itemsize * np.prod(self.shape, dtype=np.int64))


class Arena:
    """Named columns in one block of memory, which is initially zero.

    Args:
        fields: The columns. A process that attaches must pass the same ones in the same order.
        rows: Number of rows of each column, one per slot.
        shared: Whether other processes can attach to the block by ``descriptor``.
        descriptor: Descriptor of an existing shared block to attach to.

    Example:
        >>> arena = Arena({"reward": Field(np.dtype("f8")), "seen": Field(np.dtype("?"))}, rows=3)
        >>> arena["reward"][1] = 0.5
        >>> arena["reward"]
        array([0. , 0.5, 0. ])
    """

    def __init__(
        self,
        fields: Mapping[str, Field],
        rows: int,
        *,
        shared: bool = False,
        descriptor: int | None = None,
    ) -> None:
        offsets: dict[str, int] = {}
        size = 0
        for name, field in fields.items():
            offsets[name] = size
            size += -(-field.nbytes * rows // ALIGNMENT) * ALIGNMENT
        self.rows = rows
        self.nbytes = max(size, ALIGNMENT)
        self.descriptor = descriptor
        if shared and descriptor is None:
            self.descriptor = _anonymous_file(self.nbytes)
        block = self._allocate() if self.descriptor is None else self._attach(self.descriptor)
        self._columns = {
            name: _column(block, offsets[name], field, rows) for name, field in fields.items()
        }

    def _allocate(self) -> npt.NDArray[np.uint8]:
        memory = np.zeros(self.nbytes + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + self.nbytes]

    def _attach(self, descriptor: int) -> npt.NDArray[np.uint8]:
        size = os.fstat(descriptor).st_size
        if size != self.nbytes:
            raise ValueError(f"the shared block has {size} bytes, these fields need {self.nbytes}")
        return np.frombuffer(mmap.mmap(descriptor, self.nbytes), np.uint8)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """The column of this name, as an array of shape ``(rows, *field.shape)``."""
        return self._columns[name]

    def close(self) -> None:
        """Close the descriptor of a shared block; the memory lives as long as its columns."""
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _anonymous_file(size: int) -> int:
    if sys.platform == "linux":
        descriptor = os.memfd_create("shoal-arena", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def _column(block: npt.NDArray[np.uint8], offset: int, field: Field, rows: int) -> npt.NDArray[Any]:
    raw = block[offset : offset + rows * field.nbytes]
    return raw.view(field.dtype).reshape(rows, *field.shape)
