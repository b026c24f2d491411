"""PPO: learns from what it has just done, in all slots of a massive vector at once."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from shoal.train._agents.actions import Choices
from shoal.train._agents.base import Agent, Array, Step
from shoal.train._agents.learner import Learner
from shoal.train._agents.policies import ChoicePolicy, NumberPolicy
from shoal.train._agents.rollout import Rollout
from shoal.train._config.agent_settings import PPOSettings

__all__ = ["PPO"]


class PPO(Agent):
    """Proximal policy optimisation.

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
            policy: ChoicePolicy | NumberPolicy = ChoicePolicy(spaces, settings)
        else:
            self.actions = spaces.numbers()
            policy = NumberPolicy(spaces, settings)
        self.network = self.policy = policy.to(self.device)
        self._learner = Learner(
            self.policy, settings.learning_rate, settings.max_grad_norm, epsilon=1e-5
        )
        slots, width = self.num_slots, spaces.observation_size
        action_shape = () if isinstance(self.actions, Choices) else (self.actions.size,)
        self.rollout = Rollout(settings.rollout_steps, slots, width, action_shape, self.device)
        self._density = torch.zeros(slots, device=self.device)
        self._values = torch.zeros(slots, device=self.device)
        count = settings.rollout_steps * slots
        # An advantage is compared with others: a part of one step would teach nothing.
        self._parts = max(1, min(settings.minibatches, count // 2))
        self._batch_size = count // self._parts
        self._places = torch.zeros(self._batch_size, dtype=torch.int64, device=self.device)
        self._run_update = self._repeated(self._update)
        self._run_advantages = self._repeated(self._advantages, compiles=False)
        self.updates = 0
        self._share = 0.0

    def _choose(self, states: Tensor, sure: Tensor | bool) -> Tensor:
        if sure is True:
            return self.policy.best(states)
        where = sure if isinstance(sure, Tensor) else None
        return self.policy.bounded(self.policy.draw(states, self.generator, where)[0])

    def _value(self, states: Tensor) -> Tensor:
        return self.policy.value(states)

    def explore(self, observations: Array) -> Array:
        """Actions for all slots; they, and what the agent thought of them, are kept."""
        actions = super().explore(observations)
        self.rollout.begin(self._seen_now, self._chosen, self._density, self._values)
        return actions

    def _explore(self) -> None:
        chosen, density = self.policy.draw(self._seen_now, self.generator)
        self._chosen.copy_(chosen)
        self._density.copy_(density)
        self._values.copy_(self.policy.value(self._seen_now))

    def remember(self, step: Step) -> None:
        """Keep rewards and ends. What was cut short is worth what its last state is."""
        rewards = np.asarray(step.rewards, np.float32)
        cut = np.flatnonzero(step.truncated & ~step.terminated)
        if len(cut):
            rewards = rewards.copy()
            rewards[cut] += self.settings.gamma * self.evaluate(step.next_observations[cut])
        self.rollout.end(rewards, step.terminated | step.truncated)
        if self.rollout.is_full:
            self._last = np.array(step.next_observations, np.float32)

    def learn(self, due: int) -> int:  # noqa: ARG002
        """Once the slots have taken all steps of a rollout, learn from it; else nothing."""
        if not self.rollout.is_full:
            return 0
        settings = self.settings
        if settings.anneal:
            self._learner.set_rate(settings.learning_rate * max(0.0, 1.0 - self._share))
        with torch.no_grad():
            later = torch.from_numpy(self._last).to(self.device)
            self.rollout.values[-1].copy_(self.policy.value(later))
        self._run_advantages()
        count = settings.rollout_steps * self.num_slots
        batches = self._parts
        for _ in range(settings.epochs):
            order = torch.randperm(count, generator=self.generator, device=self.device)
            for places in order[: batches * self._batch_size].view(batches, -1):
                self._places.copy_(places)
                self._run_update()
        if settings.normalize_observations:
            self.policy.scaled.learn(self.rollout.observations.flatten(0, 1))
        self.rollout.clear()
        made: int = settings.epochs * batches
        self._updates_in_totals += made
        self.updates += made
        return made

    def _advantages(self) -> None:
        self.rollout.compute_advantages(self.settings.gamma, self.settings.gae_lambda)

    def _update(self) -> None:
        settings = self.settings
        batch = self.rollout.take(self._places)
        density, entropy, value = self.policy.judge(batch.observations, batch.actions)
        change = density - batch.densities
        ratio = change.exp()
        advantage = batch.advantages
        advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
        bounded = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
        policy_loss = -torch.minimum(ratio * advantage, bounded * advantage).mean()
        errors = (value - batch.returns).square()
        if settings.clip_value:
            near = batch.values + (value - batch.values).clamp(-settings.clip, settings.clip)
            errors = torch.maximum(errors, (near - batch.returns).square())
        value_loss = 0.5 * errors.mean()
        loss = policy_loss + settings.value_coefficient * value_loss
        mean_entropy = entropy.mean()
        if settings.entropy:
            loss = loss - settings.entropy * mean_entropy
        self._learner.descend(loss)
        with torch.no_grad():
            divergence = (ratio - 1.0 - change).mean()
            clipped = ((ratio - 1.0).abs() > settings.clip).float().mean()
            told = policy_loss, value_loss, mean_entropy, divergence, clipped
            self._totals += torch.stack(told)

    def progressed(self, steps: int, share: float) -> None:  # noqa: ARG002
        """The learning rate falls, where it was asked to."""
        self._share = share

    def cut(self) -> None:
        """Nothing is to be done: what was cut short was said to be truncated."""

    def begin_as(self, description: dict[str, Any], name: str) -> None:
        """Begin anew with what another agent has learnt."""
        super().begin_as(description, name)
        self._learner.forget()

    def clear_memory(self) -> None:
        """Forget the steps of this rollout."""
        self.rollout.clear()

    def state(self, *, with_memory: bool = True) -> dict[str, Any]:
        """All that the rest of a run depends on."""
        found = self._common_state() | {
            "learner": self._learner.state(),
            "updates": self.updates,
            "share": self._share,
        }
        if with_memory:
            found["rollout"] = self.rollout.state()
            if self.rollout.is_full:
                found["last"] = self._last
        return found

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        super().restore(state)
        self._learner.restore(state["learner"])
        self.updates, self._share = state["updates"], state["share"]
        if "rollout" in state:
            self.rollout.restore(state["rollout"])
            if "last" in state:
                self._last = state["last"]
        self._run_update.forget()
        self._run_advantages.forget()
