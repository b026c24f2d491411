"""The base class of off-policy agents: replay buffer, n-step returns and target networks."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from shoal.train._agents.actions import ContinuousActions
from shoal.train._agents.base import Agent, Array, Step
from shoal.train._agents.flat_adam import FlatAdam
from shoal.train._replay import NStepBuffer, ReplayBuffer, RowLayout

__all__ = ["OffPolicyAgent"]


class OffPolicyAgent(Agent):
    """An agent that stores transitions in a replay buffer and learns from sampled batches."""

    memory: ReplayBuffer

    def _build(self) -> None:
        settings, size = self.settings, self.spaces.observation_size
        self._build_networks()
        layout = RowLayout(
            {
                "observations": size,
                "actions": self.actions.size if isinstance(self.actions, ContinuousActions) else 0,
                "rewards": 0,
                "next_observations": size,
                "discounts": 0,
            }
        )
        self.memory = ReplayBuffer(settings.buffer_size, layout, self.device)
        self.n_step = NStepBuffer(settings.n_step, settings.gamma)
        self.updates = 0
        self._run_update = self._compiled(self._update)

    @abstractmethod
    def _build_networks(self) -> None:
        """Create the networks and their optimizers."""

    @abstractmethod
    def _learn_from_batch(self) -> None:
        """Sample a batch and make a gradient step."""

    @abstractmethod
    def _target_vectors(self) -> tuple[Tensor, Tensor]:
        """Return the flat parameters of the target networks and of the networks they track."""

    @abstractmethod
    def _optimizers(self) -> dict[str, FlatAdam]:
        """Return the optimizers by their names in checkpoints."""

    def _make_optimizer(self, module: nn.Module) -> FlatAdam:
        return FlatAdam(module, self.settings.learning_rate, self.settings.max_grad_norm)

    def remember(self, step: Step) -> None:
        """Store the transitions that this step completes in the replay buffer."""
        transitions = self.n_step.add(
            step.observations,
            step.actions,
            step.rewards,
            step.next_observations,
            step.terminated,
            step.truncated,
        )
        if len(transitions.rewards):
            rows = self.memory.layout.pack(transitions._asdict())
            self._on_added(self.memory.add(rows))

    def _on_added(self, indices: Array) -> None:
        """Called with the indices of transitions that were added to the replay buffer."""

    def learn(self, due: int) -> int:
        """Make ``due`` updates, or none while the replay buffer holds less than a batch."""
        if self.memory.size < min(self.settings.batch_size, self.memory.capacity):
            return 0
        for _ in range(due):
            self._run_update()
            self.updates += 1
            self._after_update()
        self._metric_updates += due
        return due

    def _update(self) -> None:
        self._learn_from_batch()
        if self.settings.target_update_freq == 1:
            self._update_targets()

    def _after_update(self) -> None:
        """Called after each update, outside of the compiled function."""
        frequency = self.settings.target_update_freq
        if frequency > 1 and self.updates % frequency == 0:
            self._update_targets()

    @torch.no_grad()
    def _update_targets(self) -> None:
        """Move the target networks towards the learned networks by ``tau``."""
        target, source = self._target_vectors()
        target.lerp_(source, self.settings.tau)

    def progressed(self, steps: int, share: float) -> None:
        """Do nothing: no schedule depends on the progress."""

    def cut(self) -> None:
        """Discard the incomplete n-step transitions."""
        self.n_step.clear()

    def begin_as(self, description: dict[str, Any], name: str) -> None:
        """Start from another agent's networks, with an empty replay buffer and new optimizers."""
        super().begin_as(description, name)
        for optimizer in self._optimizers().values():
            optimizer.reset()

    def clear_memory(self) -> None:
        """Clear the replay buffer."""
        self.memory.clear()

    def state(self, *, with_memory: bool = True) -> dict[str, Any]:
        """Return everything that the rest of a run depends on.

        Args:
            with_memory: Whether to include the replay buffer.
        """
        optimizers = self._optimizers()
        state = self._common_state() | {
            "learners": {name: optimizer.state() for name, optimizer in optimizers.items()},
            "updates": self.updates,
        }
        if with_memory:
            state |= {"memory": self.memory.state(), "n_step": self.n_step.state()}
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        super().restore(state)
        for name, optimizer in self._optimizers().items():
            optimizer.restore(state["learners"][name])
        self.updates = state["updates"]
        if "memory" in state:
            self.memory.restore(state["memory"])
            self.n_step.restore(state["n_step"])
        self._run_update.reset()
