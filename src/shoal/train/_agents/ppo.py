"""PPO: proximal policy optimization, an on-policy agent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from shoal.train._agents.actions import DiscreteActions
from shoal.train._agents.base import Agent, Array, Step
from shoal.train._agents.flat_adam import FlatAdam
from shoal.train._agents.policies import CategoricalPolicy, GaussianPolicy
from shoal.train._agents.rollout import Rollout
from shoal.train._config.agent_settings import PPOSettings

__all__ = ["PPO"]


class PPO(Agent):
    """Proximal policy optimization.

    Example:
        >>> import numpy as np
        >>> from gymnasium import spaces
        >>> from shoal.train import PPO, AgentSpaces
        >>> agent = PPO(AgentSpaces(4, spaces.Discrete(2)), num_slots=3)
        >>> agent.explore(np.zeros((3, 4), np.float32)).shape
        (3,)
    """

    kind = "PPO"
    settings_type = PPOSettings
    is_on_policy = True
    network_settings: ClassVar[tuple[str, ...]] = (
        *Agent.network_settings,
        "normalize_observations",
    )
    metric_names: ClassVar[tuple[str, ...]] = (
        "policy_loss",
        "value_loss",
        "entropy",
        "divergence",
        "clipped",
    )

    def _build(self) -> None:
        settings, spaces = self.settings, self.spaces
        if spaces.is_discrete:
            self.actions = spaces.choices()
            policy: CategoricalPolicy | GaussianPolicy = CategoricalPolicy(spaces, settings)
        else:
            self.actions = spaces.numbers()
            policy = GaussianPolicy(spaces, settings)
        self.network = self.policy = policy.to(self.device)
        self._optimizer = FlatAdam(
            self.policy, settings.learning_rate, settings.max_grad_norm, epsilon=1e-5
        )
        slots, size = self.num_slots, spaces.observation_size
        action_shape = () if isinstance(self.actions, DiscreteActions) else (self.actions.size,)
        self.rollout = Rollout(settings.rollout_steps, slots, size, action_shape, self.device)
        # Of the chosen actions and of the current observations.
        self._log_probs = torch.zeros(slots, device=self.device)
        self._values = torch.zeros(slots, device=self.device)
        count = settings.rollout_steps * slots
        # Advantages are normalized per minibatch: a minibatch of one step would teach nothing.
        self._num_minibatches = max(1, min(settings.minibatches, count // 2))
        self._batch_size = count // self._num_minibatches
        self._indices = torch.zeros(self._batch_size, dtype=torch.int64, device=self.device)
        self._run_update = self._compiled(self._update)
        self._run_advantages = self._compiled(self._compute_advantages, is_small=True)
        self.updates = 0
        self._share = 0.0

    def _choose(self, states: Tensor, deterministic: Tensor | bool) -> Tensor:
        if deterministic is True:
            return self.policy.mode(states)
        mask = deterministic if isinstance(deterministic, Tensor) else None
        return self.policy.clip(self.policy.sample(states, self.generator, mask)[0])

    def _state_values(self, states: Tensor) -> Tensor:
        return self.policy.value(states)

    def explore(self, observations: Array) -> Array:
        """Return sampled actions for all slots, and begin a step of the rollout with them.

        Args:
            observations: One row per slot, in the order of the slots.
        """
        actions = super().explore(observations)
        self.rollout.begin_step(
            self._current_observations, self._chosen_actions, self._log_probs, self._values
        )
        return actions

    def _explore(self) -> None:
        actions, log_probs = self.policy.sample(self._current_observations, self.generator)
        self._chosen_actions.copy_(actions)
        self._log_probs.copy_(log_probs)
        self._values.copy_(self.policy.value(self._current_observations))

    def remember(self, step: Step) -> None:
        """Store rewards and episode ends; bootstrap from the final state at a truncation."""
        rewards = np.asarray(step.rewards, np.float32)
        truncated = np.flatnonzero(step.truncated & ~step.terminated)
        if len(truncated):
            rewards = rewards.copy()
            final_values = self.evaluate(step.next_observations[truncated])
            rewards[truncated] += self.settings.gamma * final_values
        self.rollout.end_step(rewards, step.terminated | step.truncated)
        if self.rollout.is_full:
            self._last_observations = np.array(step.next_observations, np.float32)

    def learn(self, due: int) -> int:  # noqa: ARG002
        """Update the policy if the rollout is full, and return the number of gradient steps."""
        if not self.rollout.is_full:
            return 0
        settings = self.settings
        if settings.anneal:
            remaining = max(0.0, 1.0 - self._share)
            self._optimizer.set_learning_rate(settings.learning_rate * remaining)
        with torch.no_grad():
            last_observations = torch.from_numpy(self._last_observations).to(self.device)
            self.rollout.values[-1].copy_(self.policy.value(last_observations))
        self._run_advantages()
        count = settings.rollout_steps * self.num_slots
        batches = self._num_minibatches
        for _ in range(settings.epochs):
            order = torch.randperm(count, generator=self.generator, device=self.device)
            for indices in order[: batches * self._batch_size].view(batches, -1):
                self._indices.copy_(indices)
                self._run_update()
        if settings.normalize_observations:
            self.policy.scaled.update(self.rollout.observations.flatten(0, 1))
        self.rollout.clear()
        updates: int = settings.epochs * batches
        self._metric_updates += updates
        self.updates += updates
        return updates

    def _compute_advantages(self) -> None:
        self.rollout.compute_advantages(self.settings.gamma, self.settings.gae_lambda)

    def _update(self) -> None:
        settings = self.settings
        batch = self.rollout.take(self._indices)
        log_probs, entropy, values = self.policy.evaluate_actions(batch.observations, batch.actions)
        log_ratio = log_probs - batch.log_probs
        ratio = log_ratio.exp()
        advantages = batch.advantages
        advantages = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
        clipped_ratio = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
        policy_loss = -torch.minimum(ratio * advantages, clipped_ratio * advantages).mean()
        errors = (values - batch.returns).square()
        if settings.clip_value:
            change = (values - batch.values).clamp(-settings.clip, settings.clip)
            errors = torch.maximum(errors, (batch.values + change - batch.returns).square())
        value_loss = 0.5 * errors.mean()
        loss = policy_loss + settings.value_coefficient * value_loss
        mean_entropy = entropy.mean()
        if settings.entropy:
            loss = loss - settings.entropy * mean_entropy
        self._optimizer.step(loss)
        with torch.no_grad():
            approx_kl = (ratio - 1.0 - log_ratio).mean()
            clip_fraction = ((ratio - 1.0).abs() > settings.clip).float().mean()
            metrics = policy_loss, value_loss, mean_entropy, approx_kl, clip_fraction
            self._metric_sums += torch.stack(metrics)

    def progressed(self, steps: int, share: float) -> None:  # noqa: ARG002
        """Keep the progress of the run for the learning-rate schedule (``anneal``)."""
        self._share = share

    def cut(self) -> None:
        """Do nothing: unfinished episodes were already reported as truncated."""

    def begin_as(self, description: dict[str, Any], name: str) -> None:
        """Restart training from another agent's policy, with a new optimizer."""
        super().begin_as(description, name)
        self._optimizer.reset()

    def clear_memory(self) -> None:
        """Discard the steps of the current rollout."""
        self.rollout.clear()

    def state(self, *, with_memory: bool = True) -> dict[str, Any]:
        """Return everything that the rest of a run depends on.

        Args:
            with_memory: Whether to include the rollout.
        """
        state = self._common_state() | {
            "learner": self._optimizer.state(),
            "updates": self.updates,
            "share": self._share,
        }
        if with_memory:
            state["rollout"] = self.rollout.state()
            if self.rollout.is_full:
                state["last"] = self._last_observations
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        super().restore(state)
        self._optimizer.restore(state["learner"])
        self.updates, self._share = state["updates"], state["share"]
        if "rollout" in state:
            self.rollout.restore(state["rollout"])
            if "last" in state:
                self._last_observations = state["last"]
        self._run_update.reset()
        self._run_advantages.reset()
