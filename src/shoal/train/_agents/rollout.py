"""What all slots have just done: the steps between two times of learning, on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Rollout", "RolloutBatch"]


class RolloutBatch(NamedTuple):
    """Some steps of some slots; a row for each."""

    observations: Tensor
    actions: Tensor
    densities: Tensor
    """The logarithms of how likely the actions were when they were chosen."""
    values: Tensor
    advantages: Tensor
    returns: Tensor


class Rollout:
    """So many steps of so many slots.

    Args:
        steps: How many steps.
        slots: How many slots.
        width: How many numbers an observation has.
        action_shape: Of one action: () for choices.
        device: Where it all is.
    """

    def __init__(
        self,
        steps: int,
        slots: int,
        width: int,
        action_shape: tuple[int, ...],
        device: torch.device,
    ) -> None:
        self.steps = steps
        self.filled = 0
        kind = torch.float32 if action_shape else torch.int64
        self.observations = torch.zeros(steps, slots, width, device=device)
        self.actions = torch.zeros(steps, slots, *action_shape, dtype=kind, device=device)
        self.densities = torch.zeros(steps, slots, device=device)
        self.values = torch.zeros(steps + 1, slots, device=device)
        self.outcomes = torch.zeros(steps, 2, slots, device=device)  # rewards, and whether it ended
        self.advantages = torch.zeros(steps, slots, device=device)
        self._staging = torch.zeros(2, slots, pin_memory=device.type == "cuda")

    @property
    def is_full(self) -> bool:
        """Whether all steps were taken."""
        return self.filled == self.steps

    def begin(self, observations: Tensor, actions: Tensor, density: Tensor, value: Tensor) -> None:
        """A step begins."""
        self.observations[self.filled].copy_(observations)
        self.actions[self.filled].copy_(actions)
        self.densities[self.filled].copy_(density)
        self.values[self.filled].copy_(value)

    def end(self, rewards: npt.NDArray[np.float32], ended: npt.NDArray[np.bool_]) -> None:
        """What came of the step that has begun."""
        self._staging[0].copy_(torch.from_numpy(rewards))
        self._staging[1].copy_(torch.from_numpy(ended))
        self.outcomes[self.filled].copy_(self._staging)
        self.filled += 1

    def compute_advantages(self, gamma: float, decay: float) -> None:
        """How much better each action was than expected, by generalised advantage estimation."""
        rewards, goes_on = self.outcomes[:, 0], 1.0 - self.outcomes[:, 1]
        errors = rewards + gamma * self.values[1:] * goes_on - self.values[:-1]
        carried = gamma * decay * goes_on
        total = torch.zeros_like(errors[0])
        for step in range(self.steps - 1, -1, -1):
            total = torch.addcmul(errors[step], carried[step], total)
            self.advantages[step].copy_(total)

    def take(self, places: Tensor) -> RolloutBatch:
        """Steps, by their places in the order of steps and slots."""

        def taken(column: Tensor) -> Tensor:
            return column.flatten(0, 1).index_select(0, places)

        values, advantages = taken(self.values[:-1]), taken(self.advantages)
        return RolloutBatch(
            taken(self.observations),
            taken(self.actions),
            taken(self.densities),
            values,
            advantages,
            values + advantages,
        )

    def clear(self) -> None:
        """Begin anew."""
        self.filled = 0

    def state(self) -> dict[str, Any]:
        """Everything in it."""
        names = ("observations", "actions", "densities", "values", "outcomes")
        return {"filled": self.filled} | {
            name: getattr(self, name)[: self.filled].clone() for name in names
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        self.filled = state["filled"]
        for name in ("observations", "actions", "densities", "values", "outcomes"):
            getattr(self, name)[: self.filled].copy_(state[name])
