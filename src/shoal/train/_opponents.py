"""Hockey opponents: registration, random selection per episode, and batched actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.train._agents import Agent
from shoal.train._config.schema import OpponentConfig
from shoal.train._scripted import SCRIPTED
from shoal.train._weighted_draw import WeightedDraw

__all__ = ["NO_OPPONENT", "SELF", "Opponent", "OpponentDraw", "Opponents"]

Array = npt.NDArray[Any]

SELF = "self"
"""Name of the trained agent in its current state."""

NO_OPPONENT = "none"
"""Name of an opponent that does not move."""


@dataclass(frozen=True)
class Opponent:
    """An opponent of the trained agent."""

    name: str
    agent: Agent | None = None
    """None for scripted opponents, for :data:`NO_OPPONENT` and for forgotten opponents."""
    deterministic: bool = True

    @property
    def scripted(self) -> str | None:
        """Name of the scripted opponent in the environment; None for other opponents."""
        return self.name if self.name in SCRIPTED else None


class Opponents:
    """Registry of the opponents drawn so far, each with a permanent number.

    Args:
        live: The agent in training.
        load: Loads the agent with a given name.
    """

    def __init__(self, live: Agent, load: Callable[[str], Agent]) -> None:
        self._live = live
        self._load = load
        self._opponents: list[Opponent] = []
        self._numbers: dict[tuple[str, bool], int] = {}
        self.number(NO_OPPONENT)

    def __getitem__(self, number: int) -> Opponent:
        return self._opponents[number]

    def number(self, name: str, deterministic: bool = True) -> int:
        """Return the number of an opponent and load the opponent if necessary."""
        key = name, deterministic or name == NO_OPPONENT or name in SCRIPTED
        if key not in self._numbers:
            agent = next((other.agent for other in self._opponents if other.name == name), None)
            if agent is None:
                agent = self._load_agent(name)
            self._numbers[key] = len(self._opponents)
            self._opponents.append(Opponent(name, agent, key[1]))
        return self._numbers[key]

    def _load_agent(self, name: str) -> Agent | None:
        if name == SELF:
            return self._live
        if name == NO_OPPONENT or name in SCRIPTED:
            return None
        agent = self._load(name)
        agent.generator = self._live.generator  # its state is saved with the run
        return agent

    def forget(self, name: str, playing: Array) -> bool:
        """Release an opponent that will not be drawn again.

        Args:
            name: The name of the opponent.
            playing: The numbers of the opponents that are currently playing.

        Returns:
            Whether the opponent was released. An opponent that is still playing is kept.
        """
        keys = [key for key in self._numbers if key[0] == name]
        if np.isin([self._numbers[key] for key in keys], playing).any():
            return False
        for key in keys:
            self._opponents[self._numbers.pop(key)] = Opponent(name)
        return True

    def act(self, numbers: Array, observations: Array, out: Array) -> None:
        """Compute the actions of all opponents, with one forward pass per network.

        Args:
            numbers: The number of the opponent in each slot.
            observations: The observations of the opponents.
            out: The array to which actions are written. Rows of scripted opponents are unchanged.
        """
        playing: dict[int, list[int]] = {}
        for number in np.flatnonzero(np.bincount(numbers, minlength=len(self._opponents))).tolist():
            opponent = self._opponents[number]
            if opponent.agent is not None:
                playing.setdefault(id(opponent.agent), []).append(number)
            elif opponent.name == NO_OPPONENT:
                out[numbers == number] = 0.0
        deterministic = np.array([opponent.deterministic for opponent in self._opponents])
        for group in playing.values():
            agent = self._opponents[group[0]].agent
            assert agent is not None  # else it would not be in a group
            slots = np.flatnonzero(np.isin(numbers, group))
            mask = (
                deterministic[numbers[slots]] if len(group) > 1 else bool(deterministic[group[0]])
            )
            out[slots] = agent.act_in_environment(observations[slots], mask)

    def state(self) -> list[Any]:
        """Return the name, determinism and load status of each opponent, ordered by number."""
        return [
            [
                opponent.name,
                opponent.deterministic,
                self._numbers.get((opponent.name, opponent.deterministic)) == number,
            ]
            for number, opponent in enumerate(self._opponents)
        ]

    def restore(self, state: list[Any]) -> None:
        """Restore the opponents returned by :meth:`state`, with the same numbers."""
        self._opponents, self._numbers = [], {}
        for name, deterministic, is_loaded in state:
            if is_loaded:
                self.number(name, deterministic)
            else:
                self._opponents.append(Opponent(name))


class OpponentDraw:
    """Random selection of the opponent of an episode.

    Args:
        config: The opponent config of the phase.
        from_league: Draws the name of a league member.
    """

    def __init__(
        self, config: OpponentConfig, from_league: Callable[[np.random.Generator], str]
    ) -> None:
        mixed = config.opponents if config.type == "weighted_mixture" else None
        self._draw = (
            WeightedDraw(mixed, [part.weight for part in mixed])
            if mixed
            else WeightedDraw([config], [1.0])
        )
        self._from_league = from_league

    def draw(self, rng: np.random.Generator) -> tuple[str, bool]:
        """Return the name of an opponent, and whether it is deterministic."""
        chosen = self._draw.draw(rng)
        if chosen.type == "league":
            return self._from_league(rng), chosen.deterministic
        return _NAMES.get(chosen.type) or _self_play_name(chosen), chosen.deterministic


_NAMES = {"none": NO_OPPONENT, "basic_weak": "weak", "basic_strong": "strong"}


def _self_play_name(config: OpponentConfig) -> str:
    # Do not normalize the path: it is the key of the run's copy of the file.
    return SELF if config.checkpoint in (None, "latest") else str(config.checkpoint)
