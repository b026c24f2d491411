"""SAC: soft actor-critic for continuous actions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from shoal.errors import ConfigError
from shoal.train._agents.actions import ContinuousActions
from shoal.train._agents.base import Array, Step
from shoal.train._agents.flat_adam import FlatAdam, flatten_parameters
from shoal.train._agents.networks import (
    ScaleObservations,
    SquashedGaussian,
    Temperature,
    TwinQNetwork,
)
from shoal.train._agents.noise import make_noise
from shoal.train._agents.off_policy import OffPolicyAgent
from shoal.train._config.agent_settings import SACSettings

__all__ = ["SAC"]


class SAC(OffPolicyAgent):
    """Soft actor-critic with twin critics and a learned temperature.

    Example:
        >>> import numpy as np
        >>> from gymnasium import spaces
        >>> from shoal.train import SAC, AgentSpaces
        >>> agent = SAC(AgentSpaces(3, spaces.Box(-2.0, 2.0, (1,))))
        >>> agent.act(np.zeros(3)).shape
        (1,)
    """

    kind = "SAC"
    settings_type = SACSettings
    metric_names: ClassVar[tuple[str, ...]] = (
        "actor_loss",
        "critic_loss",
        "alpha",
        "entropy",
        "mean_value",
    )

    def _build_networks(self) -> None:
        settings, spaces, device = self.settings, self.spaces, self.device
        if settings.learn_alpha and not settings.alpha:
            raise ConfigError("alpha must be above 0 if learn_alpha is true, got 0")
        self.actions: ContinuousActions = spaces.numbers()
        size, hidden = self.actions.size, settings.hidden_dim
        # The networks work on actions normalized to [-1, 1].
        low, high = self.actions.low, self.actions.high
        self._action_center = torch.as_tensor((high + low) / 2.0, device=device)
        self._action_half_range = torch.as_tensor((high - low) / 2.0, device=device)
        inputs = spaces.observation_size
        self._scale = ScaleObservations(spaces.observation_scale).to(device)
        self.actor = SquashedGaussian(inputs, hidden, size, settings.activation).to(device)
        self.critics = TwinQNetwork(inputs + size, hidden, settings.activation).to(device)
        self.target_critics = TwinQNetwork(inputs + size, hidden, settings.activation).to(device)
        self.target_critics.load_state_dict(self.critics.state_dict())
        self.target_critics.requires_grad_(False)
        log_alpha = math.log(settings.alpha) if settings.alpha else -math.inf
        self._temperature = Temperature(log_alpha).to(device)
        self.network = nn.ModuleDict(
            {
                "actor": self.actor,
                "critics": self.critics,
                "targets": self.target_critics,
                "temperature": self._temperature,
            }
        )
        target_entropy = settings.target_entropy
        self._target_entropy = -float(size) if target_entropy is None else target_entropy
        self._actor_optimizer = self._make_optimizer(self.actor)
        self._critic_optimizer = self._make_optimizer(self.critics)
        self._critic_vector = self._critic_optimizer.vector
        self._target_vector = flatten_parameters(self.target_critics)
        self._alpha_optimizer = self._make_optimizer(self._temperature)
        self._current_noise = torch.zeros(self.num_slots, size, device=device)
        self._noise = make_noise(
            settings.noise, self.num_slots, size, device, self.generator, settings.noise_period
        )

    def _optimizers(self) -> dict[str, FlatAdam]:
        return {
            "actor": self._actor_optimizer,
            "critics": self._critic_optimizer,
            "alpha": self._alpha_optimizer,
        }

    def _choose(self, states: Tensor, deterministic: Tensor | bool) -> Tensor:
        mean, log_std = self.actor(self._scale(states))
        if deterministic is not True:
            noise = torch.randn(mean.shape, generator=self.generator, device=self.device)
            if isinstance(deterministic, Tensor):
                noise *= ~deterministic[:, None]
            mean = mean + log_std.exp() * noise
        return self._denormalized(mean.tanh())

    def _denormalized(self, actions: Tensor) -> Tensor:
        return actions * self._action_half_range + self._action_center

    def _state_values(self, states: Tensor) -> Tensor:
        scaled = self._scale(states)
        mean, _ = self.actor(scaled)
        return self.critics(scaled, mean.tanh()).amin(0)  # type: ignore[no-any-return]

    def explore(self, observations: Array) -> Array:
        """Return sampled actions for all slots, with separate noise for each slot.

        Args:
            observations: One row per slot, in the order of the slots.
        """
        self._current_noise.copy_(self._noise.sample())
        return super().explore(observations)

    def _explore(self) -> None:
        mean, log_std = self.actor(self._scale(self._current_observations))
        actions = (mean + log_std.exp() * self._current_noise).tanh()
        self._chosen_actions.copy_(self._denormalized(actions))

    def remember(self, step: Step) -> None:
        """Store completed transitions, and reset the noise of slots whose episode ended."""
        super().remember(step)
        self._noise.reset(step.terminated | step.truncated)

    def _learn_from_batch(self) -> None:
        settings = self.settings
        batch = self.memory.take(self.memory.sample(settings.batch_size, self.generator))
        states = self._scale(batch["observations"])
        next_states = self._scale(batch["next_observations"])
        past_actions = (batch["actions"] - self._action_center) / self._action_half_range
        shape = 2, settings.batch_size, self.actions.size
        noise, next_noise = torch.randn(shape, generator=self.generator, device=self.device)

        alpha = self._temperature.log_alpha.detach().exp()
        with torch.no_grad():
            next_actions, next_log_probs = self.actor.sample(next_states, next_noise)
            next_q = self.target_critics(next_states, next_actions).amin(0)
            next_values = next_q - alpha * next_log_probs
            targets = batch["rewards"] + batch["discounts"] * next_values
        predicted = self.critics(states, past_actions)
        critic_loss = 0.5 * (predicted - targets).square().mean(1).sum()
        self._critic_optimizer.step(critic_loss)

        actions, log_probs = self.actor.sample(states, noise)
        actor_loss = (alpha * log_probs - self.critics(states, actions).amin(0)).mean()
        self._actor_optimizer.step(actor_loss)

        entropy = -log_probs.detach().mean()
        if settings.learn_alpha:
            self._alpha_optimizer.step(
                self._temperature.log_alpha * (entropy - self._target_entropy)
            )
        mean_value = predicted.detach().mean()
        metrics = actor_loss.detach(), critic_loss.detach(), alpha, entropy, mean_value
        self._metric_sums += torch.stack(metrics)

    def _target_vectors(self) -> tuple[Tensor, Tensor]:
        return self._target_vector, self._critic_vector

    def cut(self) -> None:
        """Discard incomplete transitions, and reset the noise of all slots."""
        super().cut()
        self._noise.reset(np.ones(self.num_slots, dtype=np.bool_))

    def state(self, *, with_memory: bool = True) -> dict[str, Any]:
        """Return everything that the rest of a run depends on.

        Args:
            with_memory: Whether to include the replay buffer.
        """
        return super().state(with_memory=with_memory) | {"noise": self._noise.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        super().restore(state)
        self._noise.restore(state["noise"])
