"""What PPO learns: how likely each action is, and how much a state is worth."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from shoal.train._agents.actions import AgentSpaces
from shoal.train._agents.networks import RunningScale, Scaled, mlp
from shoal.train._config.agent_settings import PPOSettings

__all__ = ["ChoicePolicy", "NumberPolicy"]


def _orthogonal(network: nn.Sequential, last: float) -> nn.Sequential:
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    for layer in layers:
        nn.init.orthogonal_(layer.weight, last if layer is layers[-1] else math.sqrt(2.0))
        nn.init.zeros_(layer.bias)
    return network


class _Policy(nn.Module):
    def __init__(self, spaces: AgentSpaces, settings: PPOSettings, outputs: int) -> None:
        super().__init__()
        self.scaled: Any
        if settings.normalize_observations:
            self.scaled = RunningScale(spaces.observation_scale)
        else:
            self.scaled = Scaled(spaces.observation_scale)
        widths = [spaces.observation_size, *settings.hidden_dim]
        self.actor = _orthogonal(mlp([*widths, outputs], settings.activation), 0.01)
        self.critic = _orthogonal(mlp([*widths, 1], settings.activation), 1.0)

    def value(self, states: Tensor) -> Tensor:
        """How much each state is worth."""
        found: Tensor = self.critic(self.scaled(states)).squeeze(1)
        return found

    @abstractmethod
    def best(self, states: Tensor) -> Tensor:
        """The likeliest actions."""

    @abstractmethod
    def draw(
        self, states: Tensor, generator: torch.Generator, sure: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Actions drawn, and the logarithms of how likely they were.

        Args:
            states: For which.
            generator: What they are drawn with.
            sure: Where the likeliest are to be given instead.
        """

    def bounded(self, actions: Tensor) -> Tensor:
        """Actions as they are within their bounds."""
        return actions

    @abstractmethod
    def judge(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How likely these actions are (its logarithm), the entropy, and the states' values."""


class ChoicePolicy(_Policy):
    """One of so many choices."""

    def __init__(self, spaces: AgentSpaces, settings: PPOSettings) -> None:
        super().__init__(spaces, settings, spaces.choices().count)

    def best(self, states: Tensor) -> Tensor:
        """The likeliest choices."""
        found: Tensor = self.actor(self.scaled(states)).argmax(1)
        return found

    def draw(
        self, states: Tensor, generator: torch.Generator, sure: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Choices drawn, and the logarithms of how likely they were."""
        densities = self.actor(self.scaled(states)).log_softmax(1)
        drawn = torch.rand(densities.shape, generator=generator, device=densities.device)
        # With this added, the largest is choice k as often as its likelihood says.
        luck = -(-drawn.clamp_min(1e-20).log()).log()
        if sure is not None:
            luck = luck * ~sure[:, None]
        chosen = (densities + luck).argmax(1)
        return chosen, densities.gather(1, chosen[:, None]).squeeze(1)

    def judge(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How likely these choices are (its logarithm), the entropy, and the states' values."""
        seen = self.scaled(states)
        densities = self.actor(seen).log_softmax(1)
        entropy = -(densities.exp() * densities).sum(1)
        density = densities.gather(1, actions[:, None]).squeeze(1)
        return density, entropy, self.critic(seen).squeeze(1)


class NumberPolicy(_Policy):
    """Numbers, each normally distributed with a deviation that does not depend on the state.

    The middle of their bounds is what a mean of 0 stands for, and the bounds -1 and 1.
    """

    _middle: Tensor
    _reach: Tensor

    def __init__(self, spaces: AgentSpaces, settings: PPOSettings) -> None:
        numbers = spaces.numbers()
        super().__init__(spaces, settings, numbers.size)
        self.log_std = nn.Parameter(torch.full((numbers.size,), settings.log_std))
        self.register_buffer("_middle", torch.as_tensor((numbers.high + numbers.low) / 2.0))
        self.register_buffer("_reach", torch.as_tensor((numbers.high - numbers.low) / 2.0))

    def best(self, states: Tensor) -> Tensor:
        """The likeliest actions."""
        mean: Tensor = self.actor(self.scaled(states)) * self._reach + self._middle
        return self.bounded(mean)

    def bounded(self, actions: Tensor) -> Tensor:
        """Actions as they are within their bounds."""
        return actions.clamp(self._middle - self._reach, self._middle + self._reach)

    def draw(
        self, states: Tensor, generator: torch.Generator, sure: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Actions drawn, and the logarithms of how likely they were. They may be out of bounds."""
        mean = self.actor(self.scaled(states))
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        if sure is not None:
            noise *= ~sure[:, None]
        actions = mean + self.log_std.exp() * noise
        return actions * self._reach + self._middle, self._density(noise)

    def _density(self, noise: Tensor) -> Tensor:
        return (-0.5 * noise.square() - self.log_std - 0.5 * math.log(2.0 * math.pi)).sum(1)

    def judge(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How likely these actions are (its logarithm), the entropy, and the states' values."""
        seen = self.scaled(states)
        chosen = (actions - self._middle) / self._reach
        density = self._density((chosen - self.actor(seen)) * (-self.log_std).exp())
        entropy = (self.log_std + 0.5 * math.log(2.0 * math.pi * math.e)).sum()
        return density, entropy, self.critic(seen).squeeze(1)
