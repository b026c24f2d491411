"""Opponents in hockey: who there is, who is drawn for an episode, and what they do, in batch."""

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

__all__ = ["NOBODY", "SELF", "Opponent", "OpponentDraw", "Opponents"]

Array = npt.NDArray[Any]

SELF = "self"
"""The agent that is trained, as it is at that moment."""

NOBODY = "none"
"""One who stands still."""


@dataclass(frozen=True)
class Opponent:
    """Who plays on the other side."""

    name: str
    agent: Agent | None = None
    """None for those who are scripted, and for nobody."""
    deterministic: bool = True

    @property
    def scripted(self) -> str | None:
        """How the environment calls it, where it plays inside of that."""
        return self.name if self.name in SCRIPTED else None


class Opponents:
    """All who were drawn so far, each by a number that stays the same.

    Args:
        live: The agent that is trained.
        load: Makes the agent of a name that is not known yet.
    """

    def __init__(self, live: Agent, load: Callable[[str], Agent]) -> None:
        self._live = live
        self._load = load
        self._known: list[Opponent] = []
        self._numbers: dict[tuple[str, bool], int] = {}
        self.number(NOBODY)

    def __getitem__(self, number: int) -> Opponent:
        return self._known[number]

    def number(self, name: str, deterministic: bool = True) -> int:
        """The number of an opponent, who is loaded if nobody has met it before."""
        key = name, deterministic or name == NOBODY or name in SCRIPTED
        if key not in self._numbers:
            agent = next((known.agent for known in self._known if known.name == name), None)
            if agent is None:
                agent = self._made(name)
            self._numbers[key] = len(self._known)
            self._known.append(Opponent(name, agent, key[1]))
        return self._numbers[key]

    def _made(self, name: str) -> Agent | None:
        if name == SELF:
            return self._live
        if name == NOBODY or name in SCRIPTED:
            return None
        agent = self._load(name)
        agent.generator = self._live.generator  # so what it draws is saved with the run
        return agent

    def forget(self, name: str, playing: Array) -> bool:
        """Give back the memory of an opponent that nobody will meet again.

        Args:
            name: Whose.
            playing: The numbers of those who play at the moment.

        Returns:
            Whether it was done: it is not while the opponent still plays.
        """
        keys = [key for key in self._numbers if key[0] == name]
        if np.isin([self._numbers[key] for key in keys], playing).any():
            return False
        for key in keys:
            self._known[self._numbers.pop(key)] = Opponent(name)
        return True

    def act(self, numbers: Array, observations: Array, out: Array) -> None:
        """What all of them do: one pass through each network that has a part in it.

        Args:
            numbers: Who plays in each slot.
            observations: What they see there.
            out: Where their actions are written; those of scripted players are left as they are.
        """
        playing: dict[int, list[int]] = {}
        for number in np.flatnonzero(np.bincount(numbers, minlength=len(self._known))).tolist():
            opponent = self._known[number]
            if opponent.agent is not None:
                playing.setdefault(id(opponent.agent), []).append(number)
            elif opponent.name == NOBODY:
                out[numbers == number] = 0.0
        sure = np.array([opponent.deterministic for opponent in self._known])
        for group in playing.values():
            agent = self._known[group[0]].agent
            assert agent is not None  # else it would not be in a group
            slots = np.flatnonzero(np.isin(numbers, group))
            how = sure[numbers[slots]] if len(group) > 1 else bool(sure[group[0]])
            out[slots] = agent.act_in_environment(observations[slots], how)

    def state(self) -> list[Any]:
        """Who is known, by their numbers."""
        return [
            [
                opponent.name,
                opponent.deterministic,
                self._numbers.get((opponent.name, opponent.deterministic)) == number,
            ]
            for number, opponent in enumerate(self._known)
        ]

    def restore(self, state: list[Any]) -> None:
        """Know those that :meth:`state` has told, by the same numbers."""
        self._known, self._numbers = [], {}
        for name, deterministic, is_met in state:
            if is_met:
                self.number(name, deterministic)
            else:
                self._known.append(Opponent(name))


class OpponentDraw:
    """Draws who is played against in an episode of a phase.

    Args:
        config: What the phase says.
        from_league: Draws a name from the league.
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
        """The name of an opponent, and whether it is deterministic."""
        chosen = self._draw.draw(rng)
        if chosen.type == "league":
            return self._from_league(rng), chosen.deterministic
        return _NAMES.get(chosen.type) or _self_played(chosen), chosen.deterministic


_NAMES = {"none": NOBODY, "basic_weak": "weak", "basic_strong": "strong"}


def _self_played(config: OpponentConfig) -> str:
    # The name as it was given: by that the run knows its own copy of the file.
    return SELF if config.checkpoint in (None, "latest") else str(config.checkpoint)
