"""A ring of rows on the device: one copy puts a step of all slots in, one gather takes a batch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Memory", "RowLayout"]


class RowLayout:
    """Which numbers of a row are what.

    Args:
        sizes: The parts of a row, and how many numbers each has; those of 0 are single numbers.

    Example:
        >>> layout = RowLayout({"speed": 2, "reward": 0})
        >>> rows = layout.pack({"speed": np.ones((3, 2)), "reward": np.zeros(3)})
        >>> rows.shape
        (3, 3)
        >>> {name: part.shape for name, part in layout.unpack(torch.from_numpy(rows)).items()}
        {'speed': torch.Size([3, 2]), 'reward': torch.Size([3])}
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._places: dict[str, int | slice] = {}
        self.width = 0
        for name, size in sizes.items():
            end = self.width + max(size, 1)
            self._places[name] = slice(self.width, end) if size else self.width
            self.width = end

    def pack(self, parts: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
        """Rows of these parts."""
        count = len(next(iter(parts.values())))
        rows = np.empty((count, self.width), np.float32)
        for name, place in self._places.items():
            rows[:, place] = parts[name]
        return rows

    def unpack(self, rows: Tensor) -> dict[str, Tensor]:
        """The parts of rows, as views of them."""
        return {name: rows[:, place] for name, place in self._places.items()}


class Memory:
    """The newest so many rows.

    Args:
        capacity: How many.
        layout: What is in a row.
        device: Where they are.
    """

    def __init__(self, capacity: int, layout: RowLayout, device: torch.device) -> None:
        self.capacity = capacity
        self.layout = layout
        self.rows = _zeros(capacity, layout.width, device)
        self.size = 0
        self._place = 0
        # Updates that are recorded once read the size from the device.
        self.size_there = torch.zeros((), dtype=torch.float64, device=device)

    def add(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """Put rows in, in the place of the oldest ones; returns their places."""
        rows = rows[-self.capacity :]
        count = len(rows)
        places = (self._place + np.arange(count)) % self.capacity
        new = torch.from_numpy(rows)
        fitting = min(count, self.capacity - self._place)
        self.rows[self._place : self._place + fitting].copy_(new[:fitting])
        if fitting < count:
            self.rows[: count - fitting].copy_(new[fitting:])
        self._place = (self._place + count) % self.capacity
        if self.size < self.capacity:
            self.size = min(self.size + count, self.capacity)
            self.size_there.fill_(self.size)
        return places

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """So many places, each as likely as any other."""
        device = self.rows.device
        shares = torch.rand(count, dtype=torch.float64, device=device, generator=generator)
        return (shares * self.size_there).long()

    def take(self, places: Tensor) -> dict[str, Tensor]:
        """What is at these places."""
        return self.layout.unpack(self.rows.index_select(0, places))

    def clear(self) -> None:
        """Forget everything."""
        self.size = self._place = 0
        self.size_there.zero_()

    def state(self) -> dict[str, Any]:
        """Everything in it."""
        return {"rows": self.rows[: self.size], "size": self.size, "place": self._place}

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        self.size, self._place = state["size"], state["place"]
        self.rows[: self.size].copy_(state["rows"])
        self.size_there.fill_(self.size)


def _zeros(count: int, width: int, device: torch.device) -> Tensor:
    needed = 4 * count * width
    error = MemoryError(
        f"a buffer_size of {count:,} with {width} numbers each needs {needed / 1e9:,.1f} GB, which "
        f"{device} does not have"
    )
    # A system may promise more than it has, and end the process when that is used.
    if device.type == "cpu" and needed > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise error
    try:
        return torch.zeros(count, width, device=device)
    except RuntimeError as cause:  # of which that of a GPU is a kind
        raise error from cause
