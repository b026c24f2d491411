"""Pools of environments in which several agents act, whatever it is that steps them.

Each kind of such a pool has its own way to hold what several agents see and do. :class:`Teams` says
what the frontends need to know of it, and :class:`TeamBatch` is what all of them make of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from shoal._types import CRASHED, FINAL_KEYS
from shoal.errors import ActionTypeError, InvalidActionError, SpaceMismatchError
from shoal.pettingzoo._agent_rows import AgentRows
from shoal.pettingzoo._team_env import (
    ALIVE,
    OF_AGENTS,
    REWARD,
    TERMINATED,
    TRUNCATED,
    Members,
    members_of,
)
from shoal.pools import Pool
from shoal.pools._base import Batch, SlotChoice
from shoal.vector.wrappers._base import batch_of

__all__ = ["AgentInfo", "LastTeams", "PackedTeams", "TeamBatch", "Teams", "explaining"]

Arrays = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]


class AgentInfo(NamedTuple):
    """An info, and whose: of an agent by its place, or of all agents where that is None."""

    row: int
    place: int | None
    is_last: bool
    """Whether it belongs to an episode that has ended, where the row shows the next one."""
    info: dict[str, Any]


class LastTeams(NamedTuple):
    """How episodes ended in rows that already show the next one."""

    rows: npt.NDArray[np.int64]
    observations: Any
    columns: dict[str, Arrays]


class TeamBatch(NamedTuple):
    """A batch with a row for each environment, and in it a column for each agent."""

    slots: npt.NDArray[np.int64]
    observations: Any
    """In a form of which :class:`Teams` alone knows more."""
    rewards: npt.NDArray[np.float64]
    terminated: Flags
    truncated: Flags
    alive: Flags
    """Who can act next."""
    crashed: npt.NDArray[np.int64]
    """The rows that have lost their environments, and show a new one."""
    columns: dict[str, Arrays]
    """Infos that every agent of every environment has."""
    infos: list[AgentInfo]
    """All others."""
    last: LastTeams | None


class Teams(Protocol):
    """A pool in which a slot is an environment with several agents, and how to read it."""

    pool: Pool
    members: Members
    joins_by_copying: bool
    """Whether ``in_rows`` gives new arrays."""
    how_actions_lie: str
    """What is to be said of the pool's actions where it refuses some."""

    def read(self, batch: Batch) -> TeamBatch:
        """Take a batch apart. Its arrays may be changed."""

    def latest(self, slots: SlotChoice = None) -> Any:
        """What was shown last in each of these slots, as in ``TeamBatch.observations``."""

    def of_agent(self, observations: Any, place: int) -> Any:
        """What one agent is shown, a row for each environment."""

    def in_rows(self, observations: Any) -> Any:
        """What all are shown, with a row for each agent of each environment, the agents innermost.

        For agents with equal spaces.
        """

    def actions_by_agent(self, actions: Sequence[Any]) -> Any:
        """Actions as the pool takes them, of a batch for each agent."""

    def actions_in_rows(self, actions: Any, slots: npt.NDArray[np.int64] | None) -> Any:
        """Actions as the pool takes them, of a row for each agent of each of these environments."""


@contextmanager
def explaining(teams: Teams) -> Iterator[None]:
    """Add to an error about actions which parts of the pool's actions are whose."""
    try:
        yield
    except (InvalidActionError, ActionTypeError) as error:
        error.add_note(f"shoal: {teams.how_actions_lie}")
        raise


class PackedTeams:
    """Teams as :class:`~shoal.pettingzoo._team_env.TeamEnv` packs them.

    Args:
        pool: A pool of such environments.
    """

    joins_by_copying = True

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        found = pool.call(members_of)
        self.members: Members = found[0]
        for slot, members in enumerate(found):
            if members.agents != self.members.agents:
                raise SpaceMismatchError(
                    f"slot {slot} has the agents {members.agents}, slot 0 has "
                    f"{self.members.agents}: all environments must have the same, in one order"
                )

        self.how_actions_lie = "slots are environments, and " + ", ".join(
            f"actions[{place}] those of {agent!r}"
            for place, agent in enumerate(self.members.agents)
        )

    @cached_property
    def _rows(self) -> AgentRows:
        """For agents with equal spaces only; whoever asks for rows has made sure."""
        return AgentRows(self.members, self.pool.num_envs)

    def read(self, batch: Batch) -> TeamBatch:
        """Take a batch apart: numbers from where they were packed, infos from the pool's."""
        observations, numbers = batch.observations
        raw = batch.raw_infos
        infos: list[AgentInfo] = []
        crashed: list[int] = []
        endings: list[tuple[int, Any]] = []
        numbers, alive = numbers.copy(), numbers[:, ALIVE] != 0
        for row, info in raw[0] if raw else ():
            is_last = info.keys() == FINAL_KEYS
            told = info["final_info"] if is_last else info
            if is_last:
                shown, last_numbers = info["final_obs"]
                endings.append((row, shown))
                if CRASHED not in told:
                    numbers[row] = last_numbers
            elif CRASHED in told:
                crashed.append(row)
            for place, agent_info in told.get(OF_AGENTS, ()):
                infos.append(AgentInfo(row, place, is_last, agent_info))
            common = {key: value for key, value in told.items() if key != OF_AGENTS}
            if common:
                infos.append(AgentInfo(row, None, is_last, common))
        return TeamBatch(
            batch.slots,
            observations,
            numbers[:, REWARD],
            numbers[:, TERMINATED] != 0,
            numbers[:, TRUNCATED] != 0,
            alive,
            np.array(crashed, np.int64),
            {},
            infos,
            self._last(endings),
        )

    def _last(self, endings: list[tuple[int, Any]]) -> LastTeams | None:
        if not endings:
            return None
        rows = np.array([row for row, _ in endings])
        shown = tuple(
            batch_of(space, [shown[place] for _, shown in endings])
            for place, space in enumerate(self.members.observation_spaces)
        )
        return LastTeams(rows, shown, {})

    def latest(self, slots: SlotChoice = None) -> Any:
        """What was shown last, without the numbers."""
        return self.pool.latest(slots)[0]

    def of_agent(self, observations: Any, place: int) -> Any:
        """What one agent is shown, which is a part by itself."""
        return observations[place]

    def in_rows(self, observations: Any) -> Any:
        """What all are shown, put side by side: new arrays."""
        return self._rows.joined(observations)

    def actions_by_agent(self, actions: Sequence[Any]) -> Any:
        """Actions of each agent, which are the parts of the pool's."""
        return tuple(actions)

    def actions_in_rows(self, actions: Any, slots: npt.NDArray[np.int64] | None) -> Any:
        """Actions in rows, checked and taken apart."""
        return self._rows.taken_apart(actions, slots)
