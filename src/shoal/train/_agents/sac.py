"""SAC: an actor as random as it may be, and two critics that keep each other honest."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from shoal.errors import ConfigError
from shoal.train._agents.actions import Numbers
from shoal.train._agents.base import Array, Step
from shoal.train._agents.learner import Learner, flattened
from shoal.train._agents.networks import Scaled, Squashed, Temperature, TwinValues
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
            raise ConfigError("alpha must be above 0 where it is learnt (learn_alpha)")
        self.actions: Numbers = spaces.numbers()
        size, hidden = self.actions.size, settings.hidden_dim
        # What lies between -1 and 1 for the networks is between the bounds for the environment.
        self._middle = torch.as_tensor((self.actions.high + self.actions.low) / 2.0, device=device)
        self._reach = torch.as_tensor((self.actions.high - self.actions.low) / 2.0, device=device)
        inputs = spaces.observation_size
        self._scaled = Scaled(spaces.observation_scale).to(device)
        self.actor = Squashed(inputs, hidden, size, settings.activation).to(device)
        self.critics = TwinValues(inputs + size, hidden, settings.activation).to(device)
        self._targets = TwinValues(inputs + size, hidden, settings.activation).to(device)
        self._targets.load_state_dict(self.critics.state_dict())
        self._targets.requires_grad_(False)
        begin = math.log(settings.alpha) if settings.alpha else -math.inf
        self._temperature = Temperature(begin).to(device)
        self.network = nn.ModuleDict(
            {
                "actor": self.actor,
                "critics": self.critics,
                "targets": self._targets,
                "temperature": self._temperature,
            }
        )
        wanted = settings.target_entropy
        self._target_entropy = -float(size) if wanted is None else wanted
        self._actor_learner = self._learner(self.actor)
        self._critic_learner = self._learner(self.critics)
        self._followed = self._critic_learner.vector
        self._following = flattened(self._targets)
        self._alpha_learner = self._learner(self._temperature)
        self._noise_now = torch.zeros(self.num_slots, size, device=device)
        self._noise = make_noise(
            settings.noise, self.num_slots, size, device, self.generator, settings.noise_period
        )

    def _learners(self) -> dict[str, Learner]:
        return {
            "actor": self._actor_learner,
            "critics": self._critic_learner,
            "alpha": self._alpha_learner,
        }

    def _choose(self, states: Tensor, sure: Tensor | bool) -> Tensor:
        mean, log_std = self.actor(self._scaled(states))
        if sure is not True:
            noise = torch.randn(mean.shape, generator=self.generator, device=self.device)
            if isinstance(sure, Tensor):
                noise *= ~sure[:, None]
            mean = mean + log_std.exp() * noise
        actions: Tensor = mean.tanh() * self._reach + self._middle
        return actions

    def _value(self, states: Tensor) -> Tensor:
        seen = self._scaled(states)
        mean, _ = self.actor(seen)
        return self.critics(seen, mean.tanh()).amin(0)  # type: ignore[no-any-return]

    def explore(self, observations: Array) -> Array:
        """Actions of all slots, each with noise of its own."""
        self._noise_now.copy_(self._noise.draw())
        return super().explore(observations)

    def _explore(self) -> None:
        mean, log_std = self.actor(self._scaled(self._seen_now))
        action = (mean + log_std.exp() * self._noise_now).tanh()
        self._chosen.copy_(action * self._reach + self._middle)

    def remember(self, step: Step) -> None:
        """Put what is complete into the memory."""
        super().remember(step)
        self._noise.begin(step.terminated | step.truncated)

    def _learn_from_batch(self) -> None:
        settings = self.settings
        batch = self.memory.take(self.memory.draw(settings.batch_size, self.generator))
        seen, later = (
            self._scaled(batch["observations"]),
            self._scaled(batch["next_observations"]),
        )
        done = (batch["actions"] - self._middle) / self._reach
        shape = 2, settings.batch_size, self.actions.size
        noise, later_noise = torch.randn(shape, generator=self.generator, device=self.device)

        alpha = self._temperature.log_alpha.detach().exp()
        with torch.no_grad():
            next_actions, density = self.actor.sample(later, later_noise)
            best = self._targets(later, next_actions).amin(0) - alpha * density
            wanted = batch["rewards"] + batch["discounts"] * best
        held = self.critics(seen, done)
        critic_loss = 0.5 * (held - wanted).square().mean(1).sum()
        self._critic_learner.descend(critic_loss)

        actions, density = self.actor.sample(seen, noise)
        actor_loss = (alpha * density - self.critics(seen, actions).amin(0)).mean()
        self._actor_learner.descend(actor_loss)

        entropy = -density.detach().mean()
        if settings.learn_alpha:
            self._alpha_learner.descend(
                self._temperature.log_alpha * (entropy - self._target_entropy)
            )
        told = actor_loss.detach(), critic_loss.detach(), alpha, entropy, held.detach().mean()
        self._totals += torch.stack(told)

    def _followers(self) -> tuple[Tensor, Tensor]:
        return self._following, self._followed

    def cut(self) -> None:
        """All slots begin new episodes."""
        super().cut()
        self._noise.begin(torch.ones(self.num_slots, dtype=torch.bool).numpy())

    def state(self, *, with_memory: bool = True) -> dict[str, Any]:
        """All that the rest of a run depends on."""
        return super().state(with_memory=with_memory) | {"noise": self._noise.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        super().restore(state)
        self._noise.restore(state["noise"])
