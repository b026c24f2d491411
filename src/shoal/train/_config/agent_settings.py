"""The hyperparameters of each agent and their defaults."""

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
    """Hyperparameters of all agents."""

    learning_rate: Positive = 3e-4
    gamma: Share = 0.99
    """The discount factor."""
    hidden_dim: Sizes = field(default_factory=lambda: [256, 256])
    """The widths of the hidden layers."""
    activation: Literal["relu", "tanh", "elu", "silu"] = "relu"
    max_grad_norm: Positive | None = None
    """Gradients with a larger norm are clipped to this norm; None for no clipping."""
    compile: Compiling = "auto"
    """How updates are run. ``none``: eagerly. ``graph``: recorded once as a CUDA graph.
    ``inductor``: compiled by ``torch.compile``, and recorded on a GPU. ``auto``: ``graph`` on a
    GPU, ``none`` on the CPU."""

    def rows_of_update(self, num_envs: int) -> int:
        """Return the batch size of a forward pass in an update."""
        raise NotImplementedError


class OffPolicySettings(AgentSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hyperparameters of agents with a replay buffer."""

    batch_size: Count = 256
    buffer_size: Count = 1_000_000
    """The capacity of the replay buffer, in transitions."""
    tau: Annotated[float, Meta(gt=0, le=1)] = 0.005
    """The soft update coefficient of target networks; 1 copies the parameters."""
    target_update_freq: Count = 1
    """Gradient steps between updates of the target networks."""
    n_step: Count = 1
    """The number of steps over which rewards are summed before the value is bootstrapped."""

    def rows_of_update(self, num_envs: int) -> int:  # noqa: ARG002
        """Return the batch size of a forward pass in an update."""
        return self.batch_size


class DDDQNSettings(OffPolicySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hyperparameters of :class:`~shoal.train.DDDQN`."""

    max_grad_norm: Positive | None = 10.0
    double: bool = True
    """Whether to use double Q-learning."""
    dueling: bool = True
    """Whether to use a dueling network."""
    epsilon_start: Share = 1.0
    """The initial probability of a random action."""
    epsilon_final: Share = 0.05
    epsilon_steps: Natural = 50_000
    """Environment steps, warm-up included, over which epsilon is annealed linearly."""
    prioritized: bool = False
    """Whether to use prioritized experience replay."""
    priority_alpha: Share = 0.6
    """The exponent of TD errors: 0 for uniform, 1 for proportional priorities."""
    priority_beta: Share = 0.4
    """The initial exponent of the importance-sampling weights. It is annealed linearly to 1 over
    ``priority_beta_updates`` gradient steps."""
    priority_beta_updates: Count = 100_000
    action_fineness: Annotated[int, Meta(ge=2)] | None = None
    """The number of grid values for each element of a continuous action; every combination is a
    discrete action. The default for hockey are its eight discrete actions; other environments with
    continuous actions require this setting."""


class SACSettings(OffPolicySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hyperparameters of :class:`~shoal.train.SAC`."""

    alpha: NotNegative = 1.0
    """The entropy temperature; the initial one if ``learn_alpha`` is true."""
    learn_alpha: bool = True
    """Whether to learn the temperature."""
    target_entropy: float | None = None
    """The entropy that the learned temperature aims for; by default minus the length of an
    action."""
    noise: Literal["normal", "pink"] = "normal"
    """The exploration noise. ``pink`` noise is correlated over time."""
    noise_period: Annotated[int, Meta(ge=2)] = 256
    """The number of steps over which pink noise is correlated."""


class PPOSettings(AgentSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hyperparameters of :class:`~shoal.train.PPO`."""

    max_grad_norm: Positive | None = 0.5
    rollout_steps: Count = 128
    """Steps per slot in a rollout."""
    epochs: Count = 4
    """Passes over each rollout."""
    minibatches: Count = 4
    """Minibatches per epoch."""
    gae_lambda: Share = 0.95
    """The lambda of generalized advantage estimation."""
    clip: Positive = 0.2
    """The clip range of the probability ratio."""
    clip_value: bool = False
    """Whether to clip the change of values, too."""
    entropy: NotNegative = 0.0
    """The coefficient of the entropy bonus."""
    value_coefficient: NotNegative = 0.5
    """The coefficient of the value loss."""
    log_std: float = 0.0
    """The initial log standard deviation of continuous actions, relative to half their range."""
    normalize_observations: bool = False
    """Whether to normalize observations by their running mean and standard deviation."""
    anneal: bool = False
    """Whether to anneal the learning rate linearly to 0 over the run."""

    def rows_of_update(self, num_envs: int) -> int:
        """Return the batch size of a forward pass in an update."""
        return self.rollout_steps * num_envs // self.minibatches


AGENT_SETTINGS: dict[str, type[AgentSettings]] = {
    "DDDQN": DDDQNSettings,
    "SAC": SACSettings,
    "PPO": PPOSettings,
}
"""The settings class of each agent, by the name of the agent."""
