"""Common interface of pools whose environments have several agents.

Pools differ in how they store the observations and actions of several agents. :class:`Teams` is the
interface that frontends use, and :class:`TeamBatch` the common form of a batch.
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
    AGENT_INFOS,
    ALIVE,
    REWARD,
    TERMINATED,
    TRUNCATED,
    Members,
    members_of,
)
from shoal.pools import Pool
from shoal.pools._base import Batch, SlotChoice
from shoal.vector.wrappers._base import batch_of

__all__ = ["AgentInfo", "FinalTeamBatch", "PackedTeams", "TeamBatch", "Teams", "action_layout_note"]

Arrays = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]


class AgentInfo(NamedTuple):
    """An info of the agent with index ``place``, or of all agents if ``place`` is None."""

    row: int
    place: int | None
    is_last: bool
    """Whether the info belongs to the ended episode of a row that already has the next one."""
    info: dict[str, Any]


class FinalTeamBatch(NamedTuple):
    """Final observations and infos of rows that already have the next episode."""

    rows: npt.NDArray[np.int64]
    observations: Any
    columns: dict[str, Arrays]


class TeamBatch(NamedTuple):
    """A batch with one row per environment and one column per agent."""

    slots: npt.NDArray[np.int64]
    observations: Any
    """Observations in the format of the :class:`Teams` implementation."""
    rewards: npt.NDArray[np.float64]
    terminated: Flags
    truncated: Flags
    alive: Flags
    """Agents that can act next."""
    crashed: npt.NDArray[np.int64]
    """Rows whose environment crashed and was replaced."""
    columns: dict[str, Arrays]
    """Infos that every agent of every environment has."""
    infos: list[AgentInfo]
    """All other infos."""
    last: FinalTeamBatch | None


class Teams(Protocol):
    """A pool whose slots are environments with several agents, and the format of its batches."""

    pool: Pool
    members: Members
    joins_by_copying: bool
    """Whether ``in_rows`` returns new arrays."""
    action_layout: str
    """Description of the pool's action format, added to errors about actions."""

    def read(self, batch: Batch) -> TeamBatch:
        """Convert a batch of the pool. Its arrays may be modified."""

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observations of these slots, as in ``TeamBatch.observations``."""

    def of_agent(self, observations: Any, place: int) -> Any:
        """Return the observations of one agent, with one row per environment."""

    def in_rows(self, observations: Any) -> Any:
        """Return the observations with one row per agent and environment, agents innermost.

        The agents must have equal spaces.
        """

    def actions_by_agent(self, actions: Sequence[Any]) -> Any:
        """Convert one batch of actions per agent to the pool's format."""

    def actions_in_rows(self, actions: Any, slots: npt.NDArray[np.int64] | None) -> Any:
        """Convert one row of actions per agent of these environments to the pool's format."""


@contextmanager
def action_layout_note(teams: Teams) -> Iterator[None]:
    """Add the pool's action format to errors about actions."""
    try:
        yield
    except (InvalidActionError, ActionTypeError) as error:
        error.add_note(f"shoal: {teams.action_layout}")
        raise


class PackedTeams:
    """A pool of :class:`~shoal.pettingzoo._team_env.TeamEnv` environments.

    Args:
        pool: The pool.
    """

    joins_by_copying = True

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        members_by_slot = pool.call(members_of)
        self.members: Members = members_by_slot[0]
        for slot, members in enumerate(members_by_slot):
            if members.agents != self.members.agents:
                raise SpaceMismatchError(
                    f"all environments must have the same agents in the same order: slot 0 has "
                    f"{self.members.agents}, slot {slot} has {members.agents}"
                )

        self.action_layout = "slots are environments, and " + ", ".join(
            f"actions[{place}] those of {agent!r}"
            for place, agent in enumerate(self.members.agents)
        )

    @cached_property
    def _rows(self) -> AgentRows:
        """Converter to and from rows. The agents' spaces must be equal."""
        return AgentRows(self.members, self.pool.num_envs)

    def read(self, batch: Batch) -> TeamBatch:
        """Extract flags and rewards from the observations, and infos of agents from the infos."""
        observations, numbers = batch.observations
        raw = batch.raw_infos
        infos: list[AgentInfo] = []
        crashed: list[int] = []
        endings: list[tuple[int, Any]] = []
        numbers, alive = numbers.copy(), numbers[:, ALIVE] != 0
        for row, info in raw[0] if raw else ():
            is_last = info.keys() == FINAL_KEYS
            content = info["final_info"] if is_last else info
            if is_last:
                final_observations, last_numbers = info["final_obs"]
                endings.append((row, final_observations))
                if CRASHED not in content:
                    numbers[row] = last_numbers
            elif CRASHED in content:
                crashed.append(row)
            for place, agent_info in content.get(AGENT_INFOS, ()):
                infos.append(AgentInfo(row, place, is_last, agent_info))
            common = {key: value for key, value in content.items() if key != AGENT_INFOS}
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

    def _last(self, endings: list[tuple[int, Any]]) -> FinalTeamBatch | None:
        if not endings:
            return None
        rows = np.array([row for row, _ in endings])
        observations = tuple(
            batch_of(space, [final[place] for _, final in endings])
            for place, space in enumerate(self.members.observation_spaces)
        )
        return FinalTeamBatch(rows, observations, {})

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observations of the agents."""
        return self.pool.latest(slots)[0]

    def of_agent(self, observations: Any, place: int) -> Any:
        """Return the observations of one agent."""
        return observations[place]

    def in_rows(self, observations: Any) -> Any:
        """Return the observations of all agents as rows of new arrays."""
        return self._rows.join(observations)

    def actions_by_agent(self, actions: Sequence[Any]) -> Any:
        """Return the actions as a tuple, which is the pool's format."""
        return tuple(actions)

    def actions_in_rows(self, actions: Any, slots: npt.NDArray[np.int64] | None) -> Any:
        """Check rows of actions and split them by agent."""
        return self._rows.split(actions, slots)
