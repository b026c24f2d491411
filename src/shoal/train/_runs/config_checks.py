"""Checks of agent files named in a config, made before a run starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gymnasium import spaces

from shoal.errors import CheckpointError, ConfigError
from shoal.train._agents import Agent, load_agent
from shoal.train._config import Config
from shoal.train._config.schema import OpponentConfig
from shoal.train._scripted import SCRIPTED
from shoal.train._tasks.hockey_task import hockey_spaces

__all__ = ["check_opponents", "check_plays_hockey"]


def check_opponents(config: Config, eval_opponents: Sequence[str]) -> list[str]:
    """Load every agent file that the run uses as an opponent, and return their paths.

    Raises:
        ConfigError: If an agent file is missing or damaged, or its agent does not play hockey. The
            message contains the position in the config.
    """
    agent_files = [
        (f"training.eval_opponents[{number}]", opponent)
        for number, opponent in enumerate(eval_opponents)
        if opponent not in SCRIPTED
    ]
    for number, phase in enumerate(config.curriculum.phases):
        agent_files += _agent_files(phase.opponent, f"curriculum.phases[{number}].opponent")
    for position, path in agent_files:
        _check(position, path)
    return [path for _, path in agent_files]


def _agent_files(opponent: OpponentConfig, position: str) -> Iterator[tuple[str, str]]:
    if opponent.checkpoint not in (None, "latest"):
        yield f"{position}.checkpoint", str(opponent.checkpoint)
    for number, part in enumerate(opponent.opponents or []):
        yield from _agent_files(part, f"{position}.opponents[{number}]")


def _check(position: str, path: str) -> None:
    try:
        check_plays_hockey(load_agent(path), path)
    except (CheckpointError, ValueError) as error:
        raise ConfigError(f"{position}: {error}") from error


def check_plays_hockey(agent: Agent, name: str) -> None:
    """Raise ValueError if the spaces of an agent are not those of hockey."""
    actual, expected = agent.spaces, hockey_spaces()
    matches = actual.observation_size == expected.observation_size and isinstance(
        actual.action_space, spaces.Box
    )
    if not matches or actual.action_space.shape != expected.action_space.shape:
        raise ValueError(
            f"the agent of {name} does not play hockey: its observation size is "
            f"{actual.observation_size} and its action space is {actual.action_space}"
        )
