"""The policies of PPO: an actor and a critic."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from shoal.train._agents.actions import AgentSpaces
from shoal.train._agents.networks import NormalizeObservations, ScaleObservations, mlp
from shoal.train._config.agent_settings import PPOSettings

__all__ = ["CategoricalPolicy", "GaussianPolicy"]


def _orthogonal(network: nn.Sequential, last_gain: float) -> nn.Sequential:
    """Initialize the linear layers orthogonally, with a separate gain for the last one."""
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    for layer in layers:
        nn.init.orthogonal_(layer.weight, last_gain if layer is layers[-1] else math.sqrt(2.0))
        nn.init.zeros_(layer.bias)
    return network


class _Policy(nn.Module):
    # The names of submodules and buffers are part of the format of agent files.
    def __init__(self, spaces: AgentSpaces, settings: PPOSettings, outputs: int) -> None:
        super().__init__()
        self.scaled: Any
        if settings.normalize_observations:
            self.scaled = NormalizeObservations(spaces.observation_scale)
        else:
            self.scaled = ScaleObservations(spaces.observation_scale)
        widths = [spaces.observation_size, *settings.hidden_dim]
        self.actor = _orthogonal(mlp([*widths, outputs], settings.activation), 0.01)
        self.critic = _orthogonal(mlp([*widths, 1], settings.activation), 1.0)

    def value(self, states: Tensor) -> Tensor:
        """Return the estimated value of each state."""
        values: Tensor = self.critic(self.scaled(states)).squeeze(1)
        return values

    @abstractmethod
    def mode(self, states: Tensor) -> Tensor:
        """Return the most likely actions."""

    @abstractmethod
    def sample(
        self, states: Tensor, generator: torch.Generator, deterministic: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return sampled actions and their log-probabilities.

        Args:
            states: One row per action.
            generator: The source of random numbers.
            deterministic: A mask of the rows that get the most likely action instead.
        """

    def clip(self, actions: Tensor) -> Tensor:
        """Clip actions to the bounds of the action space, if it has any."""
        return actions

    @abstractmethod
    def evaluate_actions(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probabilities of actions, the entropy, and the values of the states."""


class CategoricalPolicy(_Policy):
    """A policy for discrete actions."""

    def __init__(self, spaces: AgentSpaces, settings: PPOSettings) -> None:
        super().__init__(spaces, settings, spaces.choices().count)

    def mode(self, states: Tensor) -> Tensor:
        """Return the most likely actions."""
        actions: Tensor = self.actor(self.scaled(states)).argmax(1)
        return actions

    def sample(
        self, states: Tensor, generator: torch.Generator, deterministic: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return sampled actions and their log-probabilities."""
        log_probs = self.actor(self.scaled(states)).log_softmax(1)
        uniform = torch.rand(log_probs.shape, generator=generator, device=log_probs.device)
        # Gumbel-max trick: the argmax of log-probabilities plus Gumbel noise is a sample.
        gumbel = -(-uniform.clamp_min(1e-20).log()).log()
        if deterministic is not None:
            gumbel = gumbel * ~deterministic[:, None]
        actions = (log_probs + gumbel).argmax(1)
        return actions, log_probs.gather(1, actions[:, None]).squeeze(1)

    def evaluate_actions(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probabilities of actions, the entropy, and the values of the states."""
        scaled = self.scaled(states)
        log_probs = self.actor(scaled).log_softmax(1)
        entropy = -(log_probs.exp() * log_probs).sum(1)
        log_prob = log_probs.gather(1, actions[:, None]).squeeze(1)
        return log_prob, entropy, self.critic(scaled).squeeze(1)


class GaussianPolicy(_Policy):
    """A policy for continuous actions, with a standard deviation that is independent of the state.

    The actor's outputs are normalized: -1 and 1 stand for the bounds of the action space.
    Log-probabilities and entropies are those of the normalized actions.
    """

    _middle: Tensor
    """The centre of the action space."""
    _reach: Tensor
    """Half the range of the action space."""

    def __init__(self, spaces: AgentSpaces, settings: PPOSettings) -> None:
        actions = spaces.numbers()
        super().__init__(spaces, settings, actions.size)
        self.log_std = nn.Parameter(torch.full((actions.size,), settings.log_std))
        self.register_buffer("_middle", torch.as_tensor((actions.high + actions.low) / 2.0))
        self.register_buffer("_reach", torch.as_tensor((actions.high - actions.low) / 2.0))

    def mode(self, states: Tensor) -> Tensor:
        """Return the most likely actions, clipped to the bounds."""
        mean: Tensor = self.actor(self.scaled(states)) * self._reach + self._middle
        return self.clip(mean)

    def clip(self, actions: Tensor) -> Tensor:
        """Clip actions to the bounds of the action space."""
        return actions.clamp(self._middle - self._reach, self._middle + self._reach)

    def sample(
        self, states: Tensor, generator: torch.Generator, deterministic: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return sampled actions, which may be out of bounds, and their log-probabilities."""
        mean = self.actor(self.scaled(states))
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        if deterministic is not None:
            noise *= ~deterministic[:, None]
        actions = mean + self.log_std.exp() * noise
        return actions * self._reach + self._middle, self._log_prob(noise)

    def _log_prob(self, noise: Tensor) -> Tensor:
        return (-0.5 * noise.square() - self.log_std - 0.5 * math.log(2.0 * math.pi)).sum(1)

    def evaluate_actions(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probabilities of actions, the entropy, and the values of the states."""
        scaled = self.scaled(states)
        normalized = (actions - self._middle) / self._reach
        log_prob = self._log_prob((normalized - self.actor(scaled)) * (-self.log_std).exp())
        entropy = (self.log_std + 0.5 * math.log(2.0 * math.pi * math.e)).sum()
        return log_prob, entropy, self.critic(scaled).squeeze(1)
