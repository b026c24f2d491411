"""The priorities of prioritized experience replay, as a sum tree on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Priorities"]


class Priorities:
    """A weight for each index of a replay buffer; indices are sampled in proportion to it.

    Args:
        capacity: The capacity of the replay buffer.
        device: The device of the tree.
        alpha: The exponent of TD errors: 0 for uniform, 1 for proportional priorities.
    """

    def __init__(self, capacity: int, device: torch.device, alpha: float) -> None:
        self._depth = max(1, (capacity - 1).bit_length())
        self._leaves = 1 << self._depth
        self._alpha = alpha
        # A binary heap: node k is the parent of 2k and 2k + 1. The sums of sums need float64.
        self._sums = torch.zeros(2 * self._leaves, dtype=torch.float64, device=device)
        self._max_weight = torch.ones((), dtype=torch.float64, device=device)

    def add(self, indices: npt.NDArray[np.int64]) -> None:
        """Give new transitions the largest weight so far."""
        on_device = torch.from_numpy(indices).to(self._sums.device)
        self._set(on_device, self._max_weight.expand(len(indices)))

    def update(self, indices: Tensor, errors: Tensor) -> None:
        """Set the weights of transitions from their TD errors."""
        weights = (errors.double().abs() + 1e-6) ** self._alpha
        self._max_weight.copy_(torch.maximum(self._max_weight, weights.max()))
        self._set(indices, weights)

    def _set(self, indices: Tensor, weights: Tensor) -> None:
        nodes = indices + self._leaves
        self._sums.index_copy_(0, nodes, weights)
        for _ in range(self._depth):
            nodes = nodes >> 1
            child_sums = self._sums[2 * nodes] + self._sums[2 * nodes + 1]
            self._sums.index_copy_(0, nodes, child_sums)

    def sample(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return ``count`` indices and their probabilities.

        The sampling is stratified: the total weight is divided into ``count`` equal ranges, and one
        index is drawn from each.
        """
        device = self._sums.device
        uniform = torch.rand(count, dtype=torch.float64, device=device, generator=generator)
        uniform = (uniform + torch.arange(count, device=device)) / count
        total = self._sums[1]
        remaining = uniform * total
        nodes = torch.ones(count, dtype=torch.int64, device=device)
        for _ in range(self._depth):
            nodes = nodes * 2
            left_sum = self._sums[nodes]
            # Rounding must not lead into a subtree without weight.
            goes_right = (remaining >= left_sum) & (self._sums[nodes + 1] > 0)
            remaining = torch.where(goes_right, remaining - left_sum, remaining)
            nodes = nodes + goes_right.long()
        return nodes - self._leaves, self._sums[nodes] / total

    def clear(self) -> None:
        """Set all weights to 0. The weight of new transitions stays as it is."""
        self._sums.zero_()

    def state(self) -> dict[str, Any]:
        """Return all weights."""
        return {"weights": self._sums[self._leaves :], "largest": self._max_weight}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        self._max_weight.copy_(state["largest"])
        self._sums[self._leaves :].copy_(state["weights"])
        first = self._leaves
        while first > 1:
            level = self._sums[first : 2 * first].view(-1, 2)
            self._sums[first // 2 : first].copy_(level.sum(1))
            first //= 2
