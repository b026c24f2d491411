"""What can be chosen of each agent, and what is chosen where the user says nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

__all__ = [
    "AGENT_SETTINGS",
    "AgentSettings",
    "DDDQNSettings",
    "OffPolicySettings",
    "PPOSettings",
    "SACSettings",
]

Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Sizes = Annotated[list[Count], Meta(min_length=1)]
Compiling = Literal["auto", "none", "graph", "inductor"]


class AgentSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all agents have."""

    learning_rate: Positive = 3e-4
    gamma: Share = 0.99
    """How much a reward counts that comes one step later."""
    hidden_dim: Sizes = field(default_factory=lambda: [256, 256])
    """The widths of the hidden layers."""
    activation: Literal["relu", "tanh", "elu", "silu"] = "relu"
    max_grad_norm: Positive | None = None
    compile: Compiling = "auto"
    """How updates are run: ``graph`` records them once as a CUDA graph, ``inductor`` compiles them
    by ``torch.compile``, besides. ``auto`` is ``graph`` on a GPU, and ``none`` elsewhere."""

    def rows_of_update(self, num_envs: int) -> int:
        """How many rows an update passes through a network at once."""
        raise NotImplementedError


class OffPolicySettings(AgentSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What agents have that remember."""

    batch_size: Count = 256
    buffer_size: Count = 1_000_000
    """How many transitions are remembered."""
    tau: Annotated[float, Meta(gt=0, le=1)] = 0.005
    """How far target networks follow, every ``target_update_freq`` updates."""
    target_update_freq: Count = 1
    n_step: Count = 1
    """Over how many steps rewards are added up before a value is estimated."""

    def rows_of_update(self, num_envs: int) -> int:  # noqa: ARG002
        """How many rows an update passes through a network at once."""
        return self.batch_size


class DDDQNSettings(OffPolicySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be chosen of :class:`~shoal.train.DDDQN`."""

    max_grad_norm: Positive | None = 10.0
    double: bool = True
    dueling: bool = True
    epsilon_start: Share = 1.0
    """How often an action is drawn uniformly, at first."""
    epsilon_final: Share = 0.05
    epsilon_steps: Natural = 50_000
    """Environment steps from one to the other, those of the warm-up included."""
    prioritized: bool = False
    """Whether transitions are drawn by how much was learnt of them."""
    priority_alpha: Share = 0.6
    priority_beta: Share = 0.4
    """How much is corrected for that at first; it grows to 1 over ``priority_beta_updates``."""
    priority_beta_updates: Count = 100_000
    action_fineness: Annotated[int, Meta(ge=2)] | None = None
    """Into how many values each number of a continuous action is divided; every combination is a
    choice. By default the eight choices of hockey; elsewhere it must be said."""


class SACSettings(OffPolicySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be chosen of :class:`~shoal.train.SAC`."""

    alpha: NotNegative = 1.0
    """The temperature: how much randomness is worth. Where it is learnt, what it begins with."""
    learn_alpha: bool = True
    target_entropy: float | None = None
    """What the temperature is learnt for; by default minus the size of an action."""
    noise: Literal["normal", "pink"] = "normal"
    """Of exploration: ``pink`` noise changes slowly; each slot has its own."""
    noise_period: Annotated[int, Meta(ge=2)] = 256
    """Steps over which pink noise is correlated."""


class PPOSettings(AgentSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be chosen of :class:`~shoal.train.PPO`."""

    max_grad_norm: Positive | None = 0.5
    rollout_steps: Count = 128
    """Steps of each slot between updates."""
    epochs: Count = 4
    minibatches: Count = 4
    """Into how many parts each epoch is divided."""
    gae_lambda: Share = 0.95
    clip: Positive = 0.2
    clip_value: bool = False
    entropy: NotNegative = 0.0
    value_coefficient: NotNegative = 0.5
    log_std: float = 0.0
    """Of continuous actions, before anything is learnt."""
    normalize_observations: bool = False
    anneal: bool = False
    """Whether the learning rate falls linearly to 0 over the run."""

    def rows_of_update(self, num_envs: int) -> int:
        """How many rows an update passes through a network at once."""
        return self.rollout_steps * num_envs // self.minibatches


AGENT_SETTINGS: dict[str, type[AgentSettings]] = {
    "DDDQN": DDDQNSettings,
    "SAC": SACSettings,
    "PPO": PPOSettings,
}
"""By the names of the agents."""
