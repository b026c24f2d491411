"""What a training config can say: one class for each part of the JSON file."""

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
_MOST = 1e12  # so that nothing is infinite
Positive = Annotated[float, Meta(gt=0, le=_MOST)]
NotNegative = Annotated[float, Meta(ge=0, le=_MOST)]


class ModeShare(Struct, frozen=True, forbid_unknown_fields=True):
    """A mode of hockey, and how often it is played."""

    mode: ModeName
    weight: NotNegative = 1.0


class EnvironmentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a phase is played in. Of hockey; other environments have no modes."""

    mode: ModeName | None = None
    mixture: Annotated[list[ModeShare], Meta(min_length=1)] | None = None
    """Drawn anew for each episode, in the place of ``mode``."""
    keep_mode: bool = True


class OpponentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who the agent plays against. Of hockey; elsewhere there is nobody."""

    type: OpponentType = "none"
    weight: NotNegative = 1.0
    """In a mixture: how often it is drawn, next to the others."""
    checkpoint: str | None = None
    """Of ``self_play``: the file of an agent, or a run; by default, or ``"latest"``, the agent as
    it is at that moment."""
    deterministic: bool = True
    """Whether an opponent that is a network does what it holds best, instead of exploring."""
    opponents: list[OpponentConfig] | None = None
    """Of ``weighted_mixture``: one of these is drawn for each episode."""


class RewardShaping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much the infos of hockey count beside its reward, from episode to episode.

    The first ``N`` episodes of a phase have the weights ``..._START`` (and none for the direction
    of the puck), then the weights change linearly over ``K`` episodes, and remain ``..._FINAL``.
    """

    N: Natural
    K: Natural
    CLOSENESS_START: float
    TOUCH_START: float
    CLOSENESS_FINAL: float
    TOUCH_FINAL: float
    DIRECTION_FINAL: float


class Phase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a training run, so many episodes or environment steps long."""

    name: Name
    episodes: Count | None = None
    steps: Count | None = None
    environment: EnvironmentConfig = EnvironmentConfig()
    opponent: OpponentConfig = OpponentConfig()
    reward_shaping: RewardShaping | None = None
    clear_buffer: bool = False
    """Whether what was remembered of earlier phases is forgotten when this one begins."""


class Curriculum(Struct, frozen=True, forbid_unknown_fields=True):
    """The phases, in their order."""

    phases: Annotated[list[Phase], Meta(min_length=1)]


class Training(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run goes on. Steps are environment steps: a vector of 8 takes eight at a time."""

    max_episode_steps: Count | None = None
    """Episodes are truncated there, if the environment has not ended them before."""
    warmup_steps: Natural = 1000
    """Steps before the first update; actions are drawn uniformly until then."""
    updates_per_step: NotNegative = 1.0
    """Gradient steps for each environment step, whatever the number of environments."""
    train_freq: Count = 1
    """Steps between rounds of updates; the updates of a round are those that became due."""
    reward_scale: Positive = 1.0
    """Rewards are multiplied by it before the agent sees them."""
    episode_log_freq: Count = 1
    """Every how many episodes one is logged: a massive vector ends thousands in a second."""
    checkpoint_save_freq: Count = 100_000
    """Steps between checkpoints."""
    checkpoints_kept: Count = 3
    checkpoint_replay: bool = True
    """Whether checkpoints hold what is remembered. Without, they are small, and a run that is
    resumed fills its memory anew."""
    eval_freq_steps: Count | None = None
    """Steps between evaluations; 100,000 by default."""
    eval_num_games: Count | None = None
    """Games, or episodes, of an evaluation; 200 by default, 20 where there is no opponent."""
    eval_opponents: Annotated[list[str], Meta(min_length=1)] | None = None
    """Whom evaluations are played against: ``weak``, ``strong``, or files of agents."""
    video_episodes: Natural = 1
    """How many episodes of the best agent are filmed in the end."""
    stop_at_reward: float | None = None
    """End the run when an evaluation has reached this mean reward."""
    max_seconds: Positive | None = None
    """End the run after so many seconds of training, those of evaluations not counted."""


class AgentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which agent, and its settings beside those in ``hyperparameters``."""

    type: Literal["DDDQN", "SAC", "PPO"]
    hyperparameters: dict[str, Any] = {}


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is trained on: hockey, unless it is said."""

    id: str = "shoal/Hockey-v0"
    arguments: dict[str, Any] = {}
    """Given to :func:`shoal.make`, such as ``{"backend": "process"}``, or to the environment."""


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A training run."""

    curriculum: Curriculum
    agent: AgentConfig
    training: Training = Training()
    hyperparameters: dict[str, Any] = {}
    """Settings of the agent; those in ``agent.hyperparameters`` count more."""
    task: Task = Task()
    league: LeagueSettings | None = None
    num_envs: Count | None = None
    """How many environments, where the caller does not say."""
    description: str = ""
    seed: Natural | None = None
    """Of everything that is random, where the caller does not say."""
