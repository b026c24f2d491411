"""What agents have in common that learn from what they remember."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from shoal.train._agents.actions import Numbers
from shoal.train._agents.base import Agent, Array, Step
from shoal.train._agents.learner import Learner
from shoal.train._replay import Memory, NStep, RowLayout

__all__ = ["OffPolicyAgent"]


class OffPolicyAgent(Agent):
    """Remembers transitions, and learns from batches of them."""

    memory: Memory

    def _build(self) -> None:
        settings, size = self.settings, self.spaces.observation_size
        self._build_networks()
        layout = RowLayout(
            {
                "observations": size,
                "actions": self.actions.size if isinstance(self.actions, Numbers) else 0,
                "rewards": 0,
                "next_observations": size,
                "discounts": 0,
            }
        )
        self.memory = Memory(settings.buffer_size, layout, self.device)
        self.n_step = NStep(settings.n_step, settings.gamma)
        self.updates = 0
        self._run = self._repeated(self._update)

    @abstractmethod
    def _build_networks(self) -> None:
        """Make the networks and their optimisers."""

    @abstractmethod
    def _learn_from_batch(self) -> None:
        """Draw a batch, and learn from it."""

    @abstractmethod
    def _followers(self) -> tuple[Tensor, Tensor]:
        """The parameters of target networks, and those that they follow."""

    @abstractmethod
    def _learners(self) -> dict[str, Learner]:
        """What steps the parameters."""

    def _learner(self, module: nn.Module) -> Learner:
        return Learner(module, self.settings.learning_rate, self.settings.max_grad_norm)

    def remember(self, step: Step) -> None:
        """Put what is complete into the memory."""
        found = self.n_step.add(
            step.observations,
            self._remembered(step.actions),
            step.rewards,
            step.next_observations,
            step.terminated,
            step.truncated,
        )
        if len(found.rewards):
            places = self.memory.add(self.memory.layout.pack(found._asdict()))
            self._remembered_at(places)

    def _remembered(self, actions: Array) -> Array:
        """Actions as they are remembered."""
        return actions

    def _remembered_at(self, places: Array) -> None:
        """New transitions are at these places."""

    def learn(self, due: int) -> int:
        """Make the updates that are due, as soon as there is a batch to learn from."""
        if self.memory.size < min(self.settings.batch_size, self.memory.capacity):
            return 0
        for _ in range(due):
            self._run()
            self.updates += 1
            self._after_update()
        self._updates_in_totals += due
        return due

    def _update(self) -> None:
        self._learn_from_batch()
        if self.settings.target_update_freq == 1:
            self._follow()

    def _after_update(self) -> None:
        """An update was made."""
        often = self.settings.target_update_freq
        if often > 1 and self.updates % often == 0:
            self._follow()

    @torch.no_grad()
    def _follow(self) -> None:
        """Target networks go a small way towards those that they follow."""
        targets, followed = self._followers()
        targets.lerp_(followed, self.settings.tau)

    def progressed(self, steps: int, share: float) -> None:
        """Nothing depends on it."""

    def cut(self) -> None:
        """What is not complete will never be."""
        self.n_step.forget()

    def begin_as(self, description: dict[str, Any], name: str) -> None:
        """Begin anew with what another agent has learnt."""
        super().begin_as(description, name)
        for learner in self._learners().values():
            learner.forget()

    def clear_memory(self) -> None:
        """Forget all transitions."""
        self.memory.clear()

    def state(self, *, with_memory: bool = True) -> dict[str, Any]:
        """All that the rest of a run depends on."""
        found = self._common_state() | {
            "learners": {name: learner.state() for name, learner in self._learners().items()},
            "updates": self.updates,
        }
        if with_memory:
            found |= {"memory": self.memory.state(), "n_step": self.n_step.state()}
        return found

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        super().restore(state)
        for name, learner in self._learners().items():
            learner.restore(state["learners"][name])
        self.updates = state["updates"]
        if "memory" in state:
            self.memory.restore(state["memory"])
            self.n_step.restore(state["n_step"])
        self._run.forget()
