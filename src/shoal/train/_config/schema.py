"""The schema of training configs: one class for each object of the JSON file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from shoal.train._league.settings import LeagueSettings

__all__ = [
    "AgentConfig",
    "Config",
    "Curriculum",
    "EnvironmentConfig",
    "ModeName",
    "ModeShare",
    "OpponentConfig",
    "OpponentType",
    "Phase",
    "RewardShaping",
    "Task",
    "Training",
]

ModeName = Literal["NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE"]
OpponentType = Literal[
    "none", "basic_weak", "basic_strong", "self_play", "league", "weighted_mixture"
]
Name = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
_MAX = 1e12  # excludes infinity
Positive = Annotated[float, Meta(gt=0, le=_MAX)]
NotNegative = Annotated[float, Meta(ge=0, le=_MAX)]


class ModeShare(Struct, frozen=True, forbid_unknown_fields=True):
    """A mode of hockey, and its relative frequency."""

    mode: ModeName
    weight: NotNegative = 1.0


class EnvironmentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The hockey mode of a phase. Other environments have no modes."""

    mode: ModeName | None = None
    mixture: Annotated[list[ModeShare], Meta(min_length=1)] | None = None
    """Modes to draw from for each episode, instead of ``mode``."""
    keep_mode: bool = True


class OpponentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The opponent of a phase. Only hockey has opponents."""

    type: OpponentType = "none"
    weight: NotNegative = 1.0
    """The relative frequency of this opponent in a mixture."""
    checkpoint: str | None = None
    """For ``self_play``: an agent file or the folder of a run. The default, ``"latest"``, is the
    agent's current networks."""
    deterministic: bool = True
    """Whether an opponent with a network chooses its best actions instead of exploring."""
    opponents: list[OpponentConfig] | None = None
    """For ``weighted_mixture``: the opponents to draw from for each episode."""


class RewardShaping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The weights of hockey's reward infos, which are added to its reward.

    In the first ``N`` episodes of a phase, the weights are ``*_START``, and 0 for the direction of
    the puck. Over the next ``K`` episodes, they change linearly to ``*_FINAL``.
    """

    N: Natural
    K: Natural
    CLOSENESS_START: float
    TOUCH_START: float
    CLOSENESS_FINAL: float
    TOUCH_FINAL: float
    DIRECTION_FINAL: float


class Phase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a training run; its length is given in ``episodes`` or environment ``steps``."""

    name: Name
    episodes: Count | None = None
    steps: Count | None = None
    environment: EnvironmentConfig = EnvironmentConfig()
    opponent: OpponentConfig = OpponentConfig()
    reward_shaping: RewardShaping | None = None
    clear_buffer: bool = False
    """Whether to clear the replay buffer when the phase starts."""


class Curriculum(Struct, frozen=True, forbid_unknown_fields=True):
    """The phases of a run, in order."""

    phases: Annotated[list[Phase], Meta(min_length=1)]


class Training(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schedule of a run.

    Steps are environment steps: a step of a vector of 8 environments counts as 8.
    """

    max_episode_steps: Count | None = None
    """The number of steps after which episodes are truncated."""
    warmup_steps: Natural = 1000
    """Steps with uniformly random actions before the first update."""
    updates_per_step: NotNegative = 1.0
    """Gradient steps per environment step, independent of the number of environments."""
    train_freq: Count = 1
    """Steps between rounds of updates. A round makes all updates that are due by then, so this does
    not change their number."""
    reward_scale: Positive = 1.0
    """The factor of the rewards that the agent learns from."""
    episode_log_freq: Count = 1
    """Log only every n-th episode: large vectors end thousands of episodes per second."""
    checkpoint_save_freq: Count = 100_000
    """Steps between checkpoints."""
    checkpoints_kept: Count = 3
    """The number of checkpoints to keep; older ones are deleted."""
    checkpoint_replay: bool = True
    """Whether checkpoints include the replay buffer. Without it they are small, and a resumed run
    starts with an empty one."""
    eval_freq_steps: Count | None = None
    """Steps between evaluations. Default: 100,000."""
    eval_num_games: Count | None = None
    """Games or episodes per evaluation. Default: 200, or 20 without an opponent."""
    eval_opponents: Annotated[list[str], Meta(min_length=1)] | None = None
    """The opponents of evaluations: ``weak``, ``strong``, or agent files."""
    video_episodes: Natural = 1
    """Episodes of the best agent to record as a video at the end of the run."""
    stop_at_reward: float | None = None
    """End the run when an evaluation reaches this mean return."""
    max_seconds: Positive | None = None
    """End the run after this training time, evaluations not included."""


class AgentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The agent, and settings that override those in ``Config.hyperparameters``."""

    type: Literal["DDDQN", "SAC", "PPO"]
    hyperparameters: dict[str, Any] = {}


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The environment to train on."""

    id: str = "shoal/Hockey-v0"
    arguments: dict[str, Any] = {}
    """Arguments of :func:`shoal.make`, such as ``{"backend": "process"}``, or the environment."""


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The config of a training run."""

    curriculum: Curriculum
    agent: AgentConfig
    training: Training = Training()
    hyperparameters: dict[str, Any] = {}
    """Settings of the agent; ``agent.hyperparameters`` override them."""
    task: Task = Task()
    league: LeagueSettings | None = None
    num_envs: Count | None = None
    """The number of environments, unless the caller passes one."""
    description: str = ""
    seed: Natural | None = None
    """The seed of the run, unless the caller passes one."""
