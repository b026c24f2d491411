"""Looks at what a config names before a run begins, which may need it only hours later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gymnasium import spaces

from shoal.errors import CheckpointError, ConfigError
from shoal.train.agents import load_agent
from shoal.train.config import Config
from shoal.train.config.schema import OpponentConfig
from shoal.train.tasks.hockey_task import hockey_spaces

__all__ = ["check_opponents"]


def check_opponents(config: Config, eval_opponents: Sequence[str]) -> None:
    """Load every agent of a file that hockey is to be played against.

    Raises:
        ConfigError: One is not there, is damaged, or plays something else; the message names where
            in the config it stands.
    """
    named = [
        (f"training.eval_opponents[{number}]", opponent)
        for number, opponent in enumerate(eval_opponents)
        if opponent not in ("weak", "strong")
    ]
    for number, phase in enumerate(config.curriculum.phases):
        named += _files(phase.opponent, f"curriculum.phases[{number}].opponent")
    for where, path in named:
        _check(where, path)


def _files(opponent: OpponentConfig, where: str) -> Iterator[tuple[str, str]]:
    if opponent.checkpoint not in (None, "latest"):
        yield f"{where}.checkpoint", str(opponent.checkpoint)
    for number, part in enumerate(opponent.opponents or []):
        yield from _files(part, f"{where}.opponents[{number}]")


def _check(where: str, path: str) -> None:
    try:
        found = load_agent(path).spaces
    except CheckpointError as error:
        raise ConfigError(f"{where}: {error}") from error
    wanted = hockey_spaces()
    is_alike = found.observation_size == wanted.observation_size and isinstance(
        found.action_space, spaces.Box
    )
    if not is_alike or found.action_space.shape != wanted.action_space.shape:
        raise ConfigError(
            f"{where}: the agent of {path} does not play hockey: it sees {found.observation_size} "
            f"numbers and does {found.action_space}"
        )
