"""Looks at what a config names before a run begins, which may need it only hours later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gymnasium import spaces

from shoal.errors import CheckpointError, ConfigError
from shoal.train._agents import Agent, load_agent
from shoal.train._config import Config
from shoal.train._config.schema import OpponentConfig
from shoal.train._scripted import SCRIPTED
from shoal.train._tasks.hockey_task import hockey_spaces

__all__ = ["check_opponents", "must_play_hockey"]


def check_opponents(config: Config, eval_opponents: Sequence[str]) -> list[str]:
    """Load every agent of a file that hockey is to be played against; the names of the files.

    Raises:
        ConfigError: One is not there, is damaged, or plays something else; the message names where
            in the config it stands.
    """
    named = [
        (f"training.eval_opponents[{number}]", opponent)
        for number, opponent in enumerate(eval_opponents)
        if opponent not in SCRIPTED
    ]
    for number, phase in enumerate(config.curriculum.phases):
        named += _files(phase.opponent, f"curriculum.phases[{number}].opponent")
    for where, path in named:
        _check(where, path)
    return [path for _, path in named]


def _files(opponent: OpponentConfig, where: str) -> Iterator[tuple[str, str]]:
    if opponent.checkpoint not in (None, "latest"):
        yield f"{where}.checkpoint", str(opponent.checkpoint)
    for number, part in enumerate(opponent.opponents or []):
        yield from _files(part, f"{where}.opponents[{number}]")


def _check(where: str, path: str) -> None:
    try:
        must_play_hockey(load_agent(path), path)
    except (CheckpointError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error


def must_play_hockey(agent: Agent, name: str) -> None:
    """Refuse an agent that was made for something else."""
    found, wanted = agent.spaces, hockey_spaces()
    is_alike = found.observation_size == wanted.observation_size and isinstance(
        found.action_space, spaces.Box
    )
    if not is_alike or found.action_space.shape != wanted.action_space.shape:
        raise ValueError(
            f"the agent of {name} does not play hockey: it sees {found.observation_size} numbers "
            f"and does {found.action_space}"
        )
