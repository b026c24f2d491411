"""Construction of the parts of a run from its plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from shoal.errors import ConfigError
from shoal.train._agents import Agent, load_agent, make_agent
from shoal.train._agents.actions import AgentSpaces
from shoal.train._config.loading import HOCKEY, merged_hyperparameters
from shoal.train._opponents import Opponents
from shoal.train._runs.folder import RunFolder, RunPlan
from shoal.train._runs.league_play import LeaguePlay
from shoal.train._runs.trainee import Trainee
from shoal.train._tasks import EnvSource, HockeyTask, VectorTask
from shoal.train._tasks.hockey_task import hockey_spaces

__all__ = ["Parts", "build"]


class Parts(NamedTuple):
    """The parts of a run."""

    task: VectorTask
    trainees: list[Trainee]
    """The agent, followed by the exploiter if there is one."""
    league: LeaguePlay | None
    rng: np.random.Generator
    """Generator of everything that is drawn per episode."""
    evaluation_seed: int

    @property
    def main(self) -> Trainee:
        """The agent in training."""
        return self.trainees[0]


def build(plan: RunPlan, folder: RunFolder, env: EnvSource) -> Parts:
    """Create task, agents and league in their initial state."""
    config = plan.config
    words = np.random.SeedSequence(plan.seed).generate_state(5)
    agent_seed, task_seed, draw_seed, evaluation_seed, exploiter_seed = (
        int(word) & 0x7FFF_FFFF for word in words
    )
    rng = np.random.default_rng(draw_seed)
    is_untrained = plan.initial_agent is None
    options: dict[str, Any] = {
        "seed": task_seed,
        "max_episode_steps": config.training.max_episode_steps,
        "reward_scale": config.training.reward_scale,
        "arguments": config.task.arguments,
    }
    if env != HOCKEY:
        with _environment_errors_as_config_errors():
            task = VectorTask(env, plan.num_envs, **options)
        try:
            agent = _make_agent(plan, task.spaces, plan.num_envs, agent_seed)
        except BaseException:
            task.close()
            raise
        trainee = Trainee(agent, slice(None), config.training, is_untrained=is_untrained)
        return Parts(task, [trainee], None, rng, evaluation_seed)

    num_exploiters = _num_exploiters(plan)
    num_main_slots = plan.num_envs - num_exploiters
    agent = _make_agent(plan, hockey_spaces(), num_main_slots, agent_seed)
    trainees = [
        Trainee(agent, slice(0, num_main_slots), config.training, is_untrained=is_untrained)
    ]
    if num_exploiters:
        exploiter = _make_agent(plan, hockey_spaces(), num_exploiters, exploiter_seed)
        trainees.append(
            Trainee(
                exploiter, slice(num_main_slots, None), config.training, is_untrained=is_untrained
            )
        )
    league = None if config.league is None else LeaguePlay(config.league, folder.league)

    def load(name: str) -> Agent:
        member = None if league is None else league.load(name, plan.device)
        if member is not None:
            return member
        return load_agent(folder.agent_file(name, plan), plan.device)

    def draw(generator: np.random.Generator) -> str:
        assert league is not None  # ensured when the config is parsed
        return league.draw(generator)

    with _environment_errors_as_config_errors():
        hockey = HockeyTask(
            plan.num_envs,
            rng=rng,
            opponents=Opponents(agent, load),
            from_league=draw,
            exploiters=num_exploiters,
            **options,
        )
    return Parts(hockey, trainees, league, rng, evaluation_seed)


@contextmanager
def _environment_errors_as_config_errors() -> Iterator[None]:
    """Raise errors of environment construction as ConfigError."""
    try:
        yield
    except (gymnasium.error.Error, TypeError, ValueError) as error:
        raise ConfigError(f"task: {error}") from error


def _make_agent(plan: RunPlan, spaces: AgentSpaces, slots: int, seed: int) -> Agent:
    config = plan.config
    try:
        return make_agent(
            config.agent.type,
            spaces,
            merged_hyperparameters(config),
            num_slots=slots,
            device=plan.device,
            seed=seed,
        )
    except ConfigError:
        raise
    except (ValueError, MemoryError) as error:
        raise ConfigError(f"agent: {error}") from error


def _num_exploiters(plan: RunPlan) -> int:
    league = plan.config.league
    if league is None or not league.exploiter_share:
        return 0
    if plan.num_envs < 2:
        raise ConfigError("league.exploiter_share needs at least 2 environments, got num_envs=1")
    return min(plan.num_envs - 1, max(1, round(league.exploiter_share * plan.num_envs)))
