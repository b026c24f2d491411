"""A ring buffer of rows on the device: one copy adds a step of all slots, one gather a batch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["ReplayBuffer", "RowLayout"]


class RowLayout:
    """The columns of a row.

    Args:
        sizes: The fields of a row and their lengths; a length of 0 stands for a scalar.

    Example:
        >>> layout = RowLayout({"speed": 2, "reward": 0})
        >>> rows = layout.pack({"speed": np.ones((3, 2)), "reward": np.zeros(3)})
        >>> rows.shape
        (3, 3)
        >>> {name: part.shape for name, part in layout.unpack(torch.from_numpy(rows)).items()}
        {'speed': torch.Size([3, 2]), 'reward': torch.Size([3])}
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._columns: dict[str, int | slice] = {}
        self.width = 0
        for name, size in sizes.items():
            end = self.width + max(size, 1)
            self._columns[name] = slice(self.width, end) if size else self.width
            self.width = end

    def pack(self, fields: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
        """Join fields into rows."""
        count = len(next(iter(fields.values())))
        rows = np.empty((count, self.width), np.float32)
        for name, columns in self._columns.items():
            rows[:, columns] = fields[name]
        return rows

    def unpack(self, rows: Tensor) -> dict[str, Tensor]:
        """Split rows into fields, which are views of them."""
        return {name: rows[:, columns] for name, columns in self._columns.items()}


class ReplayBuffer:
    """The most recent rows, up to a fixed capacity.

    Args:
        capacity: The maximum number of rows.
        layout: The columns of a row.
        device: The device of the rows.
    """

    def __init__(self, capacity: int, layout: RowLayout, device: torch.device) -> None:
        self.capacity = capacity
        self.layout = layout
        self.rows = _allocate(capacity, layout.width, device)
        self.size = 0
        self._next_index = 0
        # A copy of the size on the device, for updates that are recorded as CUDA graphs.
        self.size_tensor = torch.zeros((), dtype=torch.float64, device=device)

    def add(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """Add rows, which overwrite the oldest ones, and return their indices."""
        rows = rows[-self.capacity :]
        count = len(rows)
        indices = (self._next_index + np.arange(count)) % self.capacity
        new = torch.from_numpy(rows)
        before_wrap = min(count, self.capacity - self._next_index)
        self.rows[self._next_index : self._next_index + before_wrap].copy_(new[:before_wrap])
        if before_wrap < count:
            self.rows[: count - before_wrap].copy_(new[before_wrap:])
        self._next_index = (self._next_index + count) % self.capacity
        if self.size < self.capacity:
            self.size = min(self.size + count, self.capacity)
            self.size_tensor.fill_(self.size)
        return indices

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Return ``count`` indices, drawn uniformly with replacement."""
        device = self.rows.device
        uniform = torch.rand(count, dtype=torch.float64, device=device, generator=generator)
        return (uniform * self.size_tensor).long()

    def take(self, indices: Tensor) -> dict[str, Tensor]:
        """Gather the fields of the rows at these indices."""
        return self.layout.unpack(self.rows.index_select(0, indices))

    def clear(self) -> None:
        """Remove all rows."""
        self.size = self._next_index = 0
        self.size_tensor.zero_()

    def state(self) -> dict[str, Any]:
        """Return the rows and the write position."""
        return {"rows": self.rows[: self.size], "size": self.size, "place": self._next_index}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        self.size, self._next_index = state["size"], state["place"]
        self.rows[: self.size].copy_(state["rows"])
        self.size_tensor.fill_(self.size)


def _allocate(count: int, width: int, device: torch.device) -> Tensor:
    needed = 4 * count * width
    error = MemoryError(
        f"a buffer_size of {count:,} transitions with {width} numbers each needs "
        f"{needed / 1e9:,.1f} GB, more than {device} has: set a smaller buffer_size"
    )
    # Linux may overcommit memory and kill the process when it is used.
    if device.type == "cpu" and needed > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise error
    try:
        return torch.zeros(count, width, device=device)
    except RuntimeError as cause:  # includes torch.cuda.OutOfMemoryError
        raise error from cause
