"""DDDQN: dueling double deep Q-learning for discrete actions."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from shoal.train._agents.actions import DiscreteActions
from shoal.train._agents.base import Array
from shoal.train._agents.flat_adam import FlatAdam, flatten_parameters
from shoal.train._agents.networks import DuelingNetwork, ScaleObservations
from shoal.train._agents.off_policy import OffPolicyAgent
from shoal.train._config.agent_settings import DDDQNSettings
from shoal.train._replay import Priorities

__all__ = ["DDDQN"]


class DDDQN(OffPolicyAgent):
    """Dueling double deep Q-learning, with n-step returns and prioritized replay as options.

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
        self.actions: DiscreteActions = spaces.choices(settings.action_fineness)
        self.epsilon = self._initial_epsilon = settings.epsilon_start
        self._epsilon_tensor = torch.full((), self.epsilon, device=self.device)

        def make_q_network() -> nn.Sequential:
            return nn.Sequential(
                ScaleObservations(spaces.observation_scale),
                DuelingNetwork(
                    spaces.observation_size,
                    settings.hidden_dim,
                    self.actions.count,
                    settings.activation,
                    settings.dueling,
                ),
            ).to(self.device)

        self.q_network, self.target_network = make_q_network(), make_q_network()
        self.target_network.load_state_dict(self.q_network.state_dict())
        self.target_network.requires_grad_(False)
        self.network = nn.ModuleDict({"online": self.q_network, "target": self.target_network})
        self._optimizer = self._make_optimizer(self.q_network)
        self._target_vector = flatten_parameters(self.target_network)
        self._priorities: Priorities | None = None
        if settings.prioritized:
            self._priorities = Priorities(
                settings.buffer_size, self.device, settings.priority_alpha
            )
        self._beta = torch.full((), settings.priority_beta, device=self.device)

    def _optimizers(self) -> dict[str, FlatAdam]:
        return {"values": self._optimizer}

    def _choose(self, states: Tensor, deterministic: Tensor | bool) -> Tensor:
        greedy: Tensor = self.q_network(states).argmax(1)
        if isinstance(deterministic, Tensor):
            return torch.where(deterministic, greedy, self._epsilon_greedy(greedy))
        return greedy if deterministic else self._epsilon_greedy(greedy)

    def _epsilon_greedy(self, greedy: Tensor) -> Tensor:
        """Replace each action by a random one with the probability epsilon."""
        count, device = len(greedy), self.device
        explores = torch.rand(count, generator=self.generator, device=device) < self._epsilon_tensor
        random = torch.randint(
            self.actions.count, (count,), generator=self.generator, device=device
        )
        return torch.where(explores, random, greedy)

    def _state_values(self, states: Tensor) -> Tensor:
        values: Tensor = self.q_network(states).amax(1)
        return values

    def _explore(self) -> None:
        self._chosen_actions.copy_(self._choose(self._current_observations, deterministic=False))

    def progressed(self, steps: int, share: float) -> None:  # noqa: ARG002
        """Anneal epsilon linearly over ``epsilon_steps`` environment steps."""
        settings = self.settings
        is_instant = settings.epsilon_steps == 0
        fraction = 1.0 if is_instant else min(1.0, steps / settings.epsilon_steps)
        initial = self._initial_epsilon
        self._set_epsilon(initial + fraction * (settings.epsilon_final - initial))

    def _set_epsilon(self, epsilon: float) -> None:
        if epsilon != self.epsilon:
            self.epsilon = epsilon
            self._epsilon_tensor.fill_(epsilon)

    def _learn_from_batch(self) -> None:
        settings = self.settings
        probabilities: Tensor | None = None
        if self._priorities is None:
            indices = self.memory.sample(settings.batch_size, self.generator)
        else:
            indices, probabilities = self._priorities.sample(settings.batch_size, self.generator)
        batch = self.memory.take(indices)
        with torch.no_grad():
            next_q = self.target_network(batch["next_observations"])
            # Double Q-learning: the online network selects the action, the target evaluates it.
            selector = self.q_network(batch["next_observations"]) if settings.double else next_q
            next_values = next_q.gather(1, selector.argmax(1, keepdim=True)).squeeze(1)
            targets = batch["rewards"] + batch["discounts"] * next_values
        q_values = self.q_network(batch["observations"])
        predicted = q_values.gather(1, batch["actions"].long()[:, None]).squeeze(1)
        losses = nn.functional.smooth_l1_loss(predicted, targets, reduction="none")
        if probabilities is not None and self._priorities is not None:
            # float64: probabilities are small and the replay buffer is large.
            weights = (probabilities * self.memory.size_tensor) ** -self._beta
            losses = losses * (weights / weights.max()).float()
            self._priorities.update(indices, (predicted - targets).detach())
        loss = losses.mean()
        self._optimizer.step(loss)
        self._metric_sums += torch.stack([loss.detach(), predicted.detach().mean()])

    def _target_vectors(self) -> tuple[Tensor, Tensor]:
        return self._target_vector, self._optimizer.vector

    def _after_update(self) -> None:
        super()._after_update()
        self._update_beta()

    def _update_beta(self) -> None:
        """Anneal beta, the exponent of the importance-sampling weights, linearly to 1."""
        if self._priorities is not None:
            fraction = min(1.0, self.updates / self.settings.priority_beta_updates)
            beta = self.settings.priority_beta
            self._beta.fill_(beta + fraction * (1.0 - beta))

    def _on_added(self, indices: Array) -> None:
        if self._priorities is not None:
            self._priorities.add(indices)

    def clear_memory(self) -> None:
        """Clear the replay buffer and its priorities."""
        super().clear_memory()
        if self._priorities is not None:
            self._priorities.clear()

    def description(self) -> dict[str, Any]:
        """Return the content of an agent file: settings, spaces, networks and epsilon."""
        return super().description() | {"epsilon": self.epsilon}

    def take(self, description: dict[str, Any], name: str) -> None:
        """Load the networks of another agent. Epsilon becomes at most that of the other agent."""
        super().take(description, name)
        self._set_epsilon(min(description["epsilon"], self.settings.epsilon_start))
        self._initial_epsilon = self.epsilon

    def state(self, *, with_memory: bool = True) -> dict[str, Any]:
        """Return everything that the rest of a run depends on.

        Args:
            with_memory: Whether to include the replay buffer and its priorities.
        """
        state = super().state(with_memory=with_memory)
        state |= {"epsilon": self.epsilon, "first_epsilon": self._initial_epsilon}
        if self._priorities is not None and with_memory:
            state["priorities"] = self._priorities.state()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        super().restore(state)
        self._set_epsilon(state["epsilon"])
        self._initial_epsilon = state["first_epsilon"]
        self._update_beta()
        if self._priorities is not None and "priorities" in state:
            self._priorities.restore(state["priorities"])
