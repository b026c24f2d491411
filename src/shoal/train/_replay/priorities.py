"""Which transitions are drawn how often: a tree of sums on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Priorities"]


class Priorities:
    """A weight for each place of a memory, and places drawn as often as their weights say.

    Args:
        capacity: How many places there are.
        device: Where the tree is.
        alpha: How much errors count: 0 not at all, 1 in proportion.
    """

    def __init__(self, capacity: int, device: torch.device, alpha: float) -> None:
        self._depth = max(1, (capacity - 1).bit_length())
        self._leaves = 1 << self._depth
        self._alpha = alpha
        # Node k is above the nodes 2k and 2k + 1; float64, so that sums of sums stay exact enough.
        self._sums = torch.zeros(2 * self._leaves, dtype=torch.float64, device=device)
        self._largest = torch.ones((), dtype=torch.float64, device=device)

    def add(self, places: npt.NDArray[np.int64]) -> None:
        """New transitions are as important as any has been."""
        there = torch.from_numpy(places).to(self._sums.device)
        self._put(there, self._largest.expand(len(places)))

    def update(self, places: Tensor, errors: Tensor) -> None:
        """These transitions were learnt from, and were so far off."""
        weights = (errors.double().abs() + 1e-6) ** self._alpha
        self._largest.copy_(torch.maximum(self._largest, weights.max()))
        self._put(places, weights)

    def _put(self, places: Tensor, weights: Tensor) -> None:
        nodes = places + self._leaves
        self._sums.index_copy_(0, nodes, weights)
        for _ in range(self._depth):
            nodes = nodes >> 1
            below = self._sums[2 * nodes] + self._sums[2 * nodes + 1]
            self._sums.index_copy_(0, nodes, below)

    def draw(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """So many places, one from each equal share of all weights, and their probabilities."""
        device = self._sums.device
        shares = torch.rand(count, dtype=torch.float64, device=device, generator=generator)
        shares = (shares + torch.arange(count, device=device)) / count
        total = self._sums[1]
        left = shares * total
        nodes = torch.ones(count, dtype=torch.int64, device=device)
        for _ in range(self._depth):
            nodes = nodes * 2
            first = self._sums[nodes]
            # Never into a branch without weight, whatever rounding says.
            right = (left >= first) & (self._sums[nodes + 1] > 0)
            left = torch.where(right, left - first, left)
            nodes = nodes + right.long()
        return nodes - self._leaves, self._sums[nodes] / total

    def clear(self) -> None:
        """Nothing is remembered any more."""
        self._sums.zero_()

    def state(self) -> dict[str, Any]:
        """All weights."""
        return {"weights": self._sums[self._leaves :], "largest": self._largest}

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        self._largest.copy_(state["largest"])
        self._sums[self._leaves :].copy_(state["weights"])
        first = self._leaves
        while first > 1:
            level = self._sums[first : 2 * first].view(-1, 2)
            self._sums[first // 2 : first].copy_(level.sum(1))
            first //= 2
