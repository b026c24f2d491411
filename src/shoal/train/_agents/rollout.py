"""The rollout buffer of PPO: the steps of all slots since the last update, on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Rollout", "RolloutBatch"]

_STATE = {
    "observations": "observations",
    "actions": "actions",
    "densities": "log_probs",
    "values": "values",
    "outcomes": "outcomes",
}
"""The attributes that a checkpoint holds, by their keys in it."""


class RolloutBatch(NamedTuple):
    """A minibatch of steps, one row per step."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    """Log-probabilities of the actions under the policy that chose them."""
    values: Tensor
    advantages: Tensor
    returns: Tensor


class Rollout:
    """A fixed number of steps of all slots.

    Args:
        steps: The number of steps per slot.
        slots: The number of slots.
        observation_size: The length of an observation.
        action_shape: The shape of one action; () for discrete actions.
        device: The device of the tensors.
    """

    def __init__(
        self,
        steps: int,
        slots: int,
        observation_size: int,
        action_shape: tuple[int, ...],
        device: torch.device,
    ) -> None:
        self.steps = steps
        self.filled = 0
        dtype = torch.float32 if action_shape else torch.int64
        self.observations = torch.zeros(steps, slots, observation_size, device=device)
        self.actions = torch.zeros(steps, slots, *action_shape, dtype=dtype, device=device)
        self.log_probs = torch.zeros(steps, slots, device=device)
        self.values = torch.zeros(steps + 1, slots, device=device)
        # [:, 0] holds rewards, [:, 1] whether the episode ended.
        self.outcomes = torch.zeros(steps, 2, slots, device=device)
        self.advantages = torch.zeros(steps, slots, device=device)
        self._staging = torch.zeros(2, slots, pin_memory=device.type == "cuda")

    @property
    def is_full(self) -> bool:
        """Whether all steps have been taken."""
        return self.filled == self.steps

    def begin_step(
        self, observations: Tensor, actions: Tensor, log_probs: Tensor, values: Tensor
    ) -> None:
        """Store what is known before the environments step."""
        self.observations[self.filled].copy_(observations)
        self.actions[self.filled].copy_(actions)
        self.log_probs[self.filled].copy_(log_probs)
        self.values[self.filled].copy_(values)

    def end_step(self, rewards: npt.NDArray[np.float32], ended: npt.NDArray[np.bool_]) -> None:
        """Store rewards and episode ends, which completes the step."""
        self._staging[0].copy_(torch.from_numpy(rewards))
        self._staging[1].copy_(torch.from_numpy(ended))
        self.outcomes[self.filled].copy_(self._staging)
        self.filled += 1

    def compute_advantages(self, gamma: float, gae_lambda: float) -> None:
        """Compute the advantages by generalized advantage estimation (GAE)."""
        rewards, not_ended = self.outcomes[:, 0], 1.0 - self.outcomes[:, 1]
        deltas = rewards + gamma * self.values[1:] * not_ended - self.values[:-1]
        decay = gamma * gae_lambda * not_ended
        advantage = torch.zeros_like(deltas[0])
        for step in range(self.steps - 1, -1, -1):
            advantage = torch.addcmul(deltas[step], decay[step], advantage)
            self.advantages[step].copy_(advantage)

    def take(self, indices: Tensor) -> RolloutBatch:
        """Gather steps by index into the flattened (steps, slots) order."""

        def gather(column: Tensor) -> Tensor:
            return column.flatten(0, 1).index_select(0, indices)

        values, advantages = gather(self.values[:-1]), gather(self.advantages)
        return RolloutBatch(
            gather(self.observations),
            gather(self.actions),
            gather(self.log_probs),
            values,
            advantages,
            values + advantages,
        )

    def clear(self) -> None:
        """Start an empty rollout."""
        self.filled = 0

    def state(self) -> dict[str, Any]:
        """Return a copy of the steps taken so far."""
        return {"filled": self.filled} | {
            key: getattr(self, name)[: self.filled].clone() for key, name in _STATE.items()
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        self.filled = state["filled"]
        for key, name in _STATE.items():
            getattr(self, name)[: self.filled].copy_(state[key])
