"""DDDQN: values of choices, learnt with double targets and told apart from those of states."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from shoal.train._agents.actions import Choices
from shoal.train._agents.base import Array
from shoal.train._agents.learner import Learner, flattened
from shoal.train._agents.networks import Dueling, Scaled
from shoal.train._agents.off_policy import OffPolicyAgent
from shoal.train._config.agent_settings import DDDQNSettings
from shoal.train._replay import Priorities

__all__ = ["DDDQN"]


class DDDQN(OffPolicyAgent):
    """Dueling double deep Q-learning, with n-step returns and prioritised replay as options.

    Example:
        >>> import numpy as np
        >>> from gymnasium import spaces
        >>> from shoal.train import DDDQN, AgentSpaces
        >>> agent = DDDQN(AgentSpaces(4, spaces.Discrete(2)), num_slots=3)
        >>> agent.act_batch(np.zeros((3, 4)), deterministic=True).shape
        (3,)
    """

    kind = "DDDQN"
    settings_type = DDDQNSettings
    metric_names: ClassVar[tuple[str, ...]] = ("loss", "mean_value")
    network_settings: ClassVar[tuple[str, ...]] = (
        *OffPolicyAgent.network_settings,
        "dueling",
        "action_fineness",
    )

    def _build_networks(self) -> None:
        settings, spaces = self.settings, self.spaces
        self.actions: Choices = spaces.choices(settings.action_fineness)
        self.epsilon = self._first_epsilon = settings.epsilon_start
        self._epsilon_there = torch.full((), self.epsilon, device=self.device)

        def values() -> nn.Sequential:
            return nn.Sequential(
                Scaled(spaces.observation_scale),
                Dueling(
                    spaces.observation_size,
                    settings.hidden_dim,
                    self.actions.count,
                    settings.activation,
                    settings.dueling,
                ),
            )

        self.values, self._target = values().to(self.device), values().to(self.device)
        self._target.load_state_dict(self.values.state_dict())
        self._target.requires_grad_(False)
        self.network = nn.ModuleDict({"online": self.values, "target": self._target})
        self._value_learner = self._learner(self.values)
        self._targets = flattened(self._target)
        self._priorities: Priorities | None = None
        if settings.prioritized:
            self._priorities = Priorities(
                settings.buffer_size, self.device, settings.priority_alpha
            )
        self._beta = torch.full((), settings.priority_beta, device=self.device)

    def _learners(self) -> dict[str, Learner]:
        return {"values": self._value_learner}

    def _choose(self, states: Tensor, sure: Tensor | bool) -> Tensor:
        best: Tensor = self.values(states).argmax(1)
        if isinstance(sure, Tensor):
            return torch.where(sure, best, self._mixed(best))
        return best if sure else self._mixed(best)

    def _mixed(self, best: Tensor) -> Tensor:
        """Some choices in the place of the best ones: a share of epsilon of them."""
        count, device = len(best), self.device
        explores = torch.rand(count, generator=self.generator, device=device) < self._epsilon_there
        drawn = torch.randint(self.actions.count, (count,), generator=self.generator, device=device)
        return torch.where(explores, drawn, best)

    def _value(self, states: Tensor) -> Tensor:
        best: Tensor = self.values(states).amax(1)
        return best

    def _explore(self) -> None:
        self._chosen.copy_(self._choose(self._seen_now, sure=False))

    def progressed(self, steps: int, share: float) -> None:  # noqa: ARG002
        """Epsilon falls."""
        settings = self.settings
        done = 1.0 if settings.epsilon_steps == 0 else min(1.0, steps / settings.epsilon_steps)
        first = self._first_epsilon
        self._set_epsilon(first + done * (settings.epsilon_final - first))

    def _set_epsilon(self, epsilon: float) -> None:
        if epsilon != self.epsilon:
            self.epsilon = epsilon
            self._epsilon_there.fill_(epsilon)

    def _learn_from_batch(self) -> None:
        settings = self.settings
        probabilities: Tensor | None = None
        if self._priorities is None:
            places = self.memory.draw(settings.batch_size, self.generator)
        else:
            places, probabilities = self._priorities.draw(settings.batch_size, self.generator)
        batch = self.memory.take(places)
        with torch.no_grad():
            later = self._target(batch["next_observations"])
            judge = self.values(batch["next_observations"]) if settings.double else later
            best = later.gather(1, judge.argmax(1, keepdim=True)).squeeze(1)
            wanted = batch["rewards"] + batch["discounts"] * best
        values = self.values(batch["observations"])
        held = values.gather(1, batch["actions"].long()[:, None]).squeeze(1)
        losses = nn.functional.smooth_l1_loss(held, wanted, reduction="none")
        if probabilities is not None and self._priorities is not None:
            # float64, since probabilities are small and the memory is large
            weights = (probabilities * self.memory.size_there) ** -self._beta
            losses = losses * (weights / weights.max()).float()
            self._priorities.update(places, (held - wanted).detach())
        loss = losses.mean()
        self._value_learner.descend(loss)
        self._totals += torch.stack([loss.detach(), held.detach().mean()])

    def _followers(self) -> tuple[Tensor, Tensor]:
        return self._targets, self._value_learner.vector

    def _after_update(self) -> None:
        super()._after_update()
        self._set_beta()

    def _set_beta(self) -> None:
        if self._priorities is not None:
            share = min(1.0, self.updates / self.settings.priority_beta_updates)
            beta = self.settings.priority_beta
            self._beta.fill_(beta + share * (1.0 - beta))

    def _remembered_at(self, places: Array) -> None:
        if self._priorities is not None:
            self._priorities.add(places)

    def clear_memory(self) -> None:
        """Forget all transitions."""
        super().clear_memory()
        if self._priorities is not None:
            self._priorities.clear()

    def description(self) -> dict[str, Any]:
        """What an agent's file holds."""
        return super().description() | {"epsilon": self.epsilon}

    def take(self, description: dict[str, Any], name: str) -> None:
        """Take what another agent has learnt, and explore no more than that one did."""
        super().take(description, name)
        self._set_epsilon(min(description["epsilon"], self.settings.epsilon_start))
        self._first_epsilon = self.epsilon

    def state(self, *, with_memory: bool = True) -> dict[str, Any]:
        """All that the rest of a run depends on."""
        found = super().state(with_memory=with_memory)
        found |= {"epsilon": self.epsilon, "first_epsilon": self._first_epsilon}
        if self._priorities is not None and with_memory:
            found["priorities"] = self._priorities.state()
        return found

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        super().restore(state)
        self._set_epsilon(state["epsilon"])
        self._first_epsilon = state["first_epsilon"]
        self._set_beta()
        if self._priorities is not None and "priorities" in state:
            self._priorities.restore(state["priorities"])
