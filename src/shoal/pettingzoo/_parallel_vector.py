"""A batch for each agent: many parallel environments behind an interface like PettingZoo's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, create_empty_array

from shoal._plan import Plan
from shoal._spaces import Layout
from shoal._spaces.leaves import batch_leaves
from shoal._types import Results, as_events
from shoal.errors import InvalidActionError, ResetMaskError
from shoal.pettingzoo._roster import Roster
from shoal.pettingzoo._team_env import Agent
from shoal.pettingzoo._teams import Teams, explaining
from shoal.pettingzoo._views import emptied, results_of, told_alive, view_of_agent
from shoal.pools._base import Batch, SlotChoice, slot_numbers
from shoal.pools._env_calls import EnvironmentCalls
from shoal.vector._infos import InfoFormat, format_infos
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._reset_mask import split_reset_mask
from shoal.vector._seeding import Seed, Seeding, slot_seeds

__all__ = ["AgentBatch", "ParallelVectorEnv"]

Arrays = npt.NDArray[Any]
ByAgent = dict[Agent, Any]
Spaces = dict[Agent, Space[Any]]


class AgentBatch(NamedTuple):
    """What ``recv`` returns: by agent, a batch in which row k belongs to environment ``slots[k]``.

    ``alive`` tells who can act next.
    """

    slots: npt.NDArray[np.int64]
    observations: ByAgent
    rewards: dict[Agent, npt.NDArray[np.float64]]
    terminations: dict[Agent, npt.NDArray[np.bool_]]
    truncations: dict[Agent, npt.NDArray[np.bool_]]
    infos: ByAgent
    alive: dict[Agent, npt.NDArray[np.bool_]]


class ParallelVectorEnv(EnvironmentCalls):
    """Many parallel environments, stepped as one: each agent has batches of its own.

    Agents may have different spaces. What PettingZoo has by agent is here by agent too, with a row
    for each environment. All of ``possible_agents`` are always there; where one is gone it is shown
    zeros, earns 0, and its actions are ignored. ``terminations`` and ``truncations`` say once that
    it ends: in the step in which it does. ``infos[agent]["alive"]``, and ``alive``, tell where it
    can act next. What an environment tells of no agent in particular, all are told.

    An environment is reset when its last agent is gone, in the way of ``autoreset_mode``. With
    SAME_STEP each agent that ends has its last observation in ``infos[agent]["final_obs"]``, and is
    shown what comes next: the new episode, or nothing while others go on.

    Args:
        teams: The environments.
        owner: The vector that the teams' pool was made for.
        statistics: Whether infos report the episode of each agent.
        info_format: The form of ``infos[agent]``; see :data:`shoal.vector._infos.InfoFormat`.
        seeding: How one seed becomes one for each environment.
        batch_size: How many environments ``recv`` returns where it is not told.

    Example:
        >>> from shoal.pettingzoo import make
        >>> with make("shoal/Hockey-v0", num_envs=1000, shape="dict") as envs:
        ...     observations, infos = envs.reset(seed=1)
        ...     spaces = {agent: envs.batched_action_space(agent) for agent in envs.agents}
        ...     actions = {agent: space.sample() for agent, space in spaces.items()}
        ...     observations, rewards, terminations, truncations, infos = envs.step(actions)
        ...     observations["player_2"].shape
        (1000, 18)
    """

    plan: Plan | None

    def __init__(
        self,
        teams: Teams,
        owner: VectorEnv,
        *,
        statistics: bool = False,
        info_format: InfoFormat = "dict",
        seeding: Seeding = "adjacent",
        batch_size: int | None = None,
    ) -> None:
        self._teams, self._owner = teams, owner
        self._pool = pool = teams.pool
        self._info_format, self._seeding, self._batch_size = info_format, seeding, batch_size
        self.plan = owner.plan
        members = teams.members
        self.possible_agents: list[Agent] = list(members.agents)
        self.num_envs = pool.num_envs
        self.autoreset_mode = pool.autoreset_mode
        self.metadata = {**pool.metadata, "autoreset_mode": pool.autoreset_mode}
        self.render_mode = pool.render_mode
        self._shown: Spaces = dict(zip(members.agents, members.observation_spaces, strict=True))
        self._acts: Spaces = dict(zip(members.agents, members.action_spaces, strict=True))
        self._batched_shown = _batched(self._shown, self.num_envs)
        self._batched_acts = _batched(self._acts, self.num_envs)
        self._layouts = list(map(Layout.of, members.observation_spaces))
        self._nothing = [
            batch_leaves(layout, create_empty_array(layout.space, 1)) for layout in self._layouts
        ]
        self._roster = Roster(self.num_envs, len(members.agents), statistics)
        self._moves_on = self.autoreset_mode is AutoresetMode.SAME_STEP

    @property
    def agents(self) -> list[Agent]:
        """The agents that can act in at least one environment."""
        places = np.flatnonzero(self._roster.alive.any(axis=0))
        return [self.possible_agents[place] for place in places.tolist()]

    @property
    def alive(self) -> dict[Agent, npt.NDArray[np.bool_]]:
        """In which environments each agent can act next."""
        return self._by_agent(self._roster.alive)

    def observation_space(self, agent: Agent) -> Space[Any]:
        """What one agent observes in one environment; always the same object."""
        return self._shown[agent]

    def action_space(self, agent: Agent) -> Space[Any]:
        """What one agent does in one environment; always the same object."""
        return self._acts[agent]

    def batched_observation_space(self, agent: Agent) -> Space[Any]:
        """What one agent observes in all environments."""
        return self._batched_shown[agent]

    def batched_action_space(self, agent: Agent) -> Space[Any]:
        """What one agent does in all environments."""
        return self._batched_acts[agent]

    def reset(
        self, seed: Seed = None, options: dict[str, Any] | None = None
    ) -> tuple[ByAgent, ByAgent]:
        """Begin new episodes, in all environments or in those that a mask selects.

        Args:
            seed: None, one integer for all, or one (or None) for each environment.
            options: Given to each environment, without ``"reset_mask"``, which selects some.

        Returns:
            By agent, the observations of all environments, and the infos of those that were reset.
        """
        mask, options = split_reset_mask(options, self.num_envs)
        seeds = slot_seeds(seed, self.num_envs, self._seeding)
        if mask is None:
            slots = np.arange(self.num_envs)
        else:
            self._check_mask(mask)
            slots = np.flatnonzero(mask)
        self._pool.reset(slots, [seeds[slot] for slot in slots], options)
        self._roster.expect_reset(slots)
        found = self._results(self._pool.recv())
        if mask is None:
            return self._of_each(0, found), self._infos(found, self.num_envs)
        return self._latest(), self._infos_of_some(found, slots)

    def step(
        self, actions: Mapping[Agent, Any]
    ) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """Step all environments, with a batch of actions for each agent.

        An agent that can act nowhere may be left out.

        Returns:
            By agent: observations, rewards, terminations, truncations and infos.

        Raises:
            InvalidActionError: An agent is missing, unknown, or its actions are wrong. Nothing was
                stepped.
        """
        acts = self._teams.actions_by_agent(self._checked(actions, None))
        with explaining(self._teams):
            results = self._pool.step(acts)
        return self._shaped(Batch(np.arange(self.num_envs), *results))[1:6]

    def send(self, actions: Mapping[Agent, Any], slots: SlotChoice = None) -> None:
        """Begin to step these environments, with a row of actions for each of them."""
        chosen = slot_numbers(slots, self.num_envs)
        acts = self._teams.actions_by_agent(self._checked(actions, chosen))
        with explaining(self._teams):
            self._pool.send(acts, chosen)

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        slots: SlotChoice = None,
    ) -> AgentBatch:
        """Receive environments that were sent, first come, first served.

        Args:
            min_slots: How many to wait for; None for ``batch_size`` of them, or for all that are in
                flight where no batch size was chosen.
            timeout: Seconds to wait at the most, None for no limit.
            slots: Wait for these environments instead, and return them in this order.

        Raises:
            ReceiveTimeoutError: The time is over. What is in flight can still be received.
        """
        most = None
        if min_slots is None and slots is None and self._batch_size is not None:
            min_slots = most = min(self._batch_size, self._pool.in_flight) or None
        return self._shaped(self._pool.recv(min_slots, timeout, max_slots=most, slots=slots))

    def close(self) -> None:
        """Close every environment; a second call does nothing."""
        self._owner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.possible_agents}, num_envs={self.num_envs})"

    def _checked(
        self, actions: Mapping[Agent, Any], slots: npt.NDArray[np.int64] | None
    ) -> list[Any]:
        """A batch of actions for each agent; any for those that are nowhere."""
        if not isinstance(actions, Mapping):
            raise InvalidActionError(
                f"got {type(actions).__name__}, expected a dict with a batch for each agent"
            )
        unknown = [agent for agent in actions if agent not in self._acts]
        if unknown:
            raise InvalidActionError(
                f"there is no agent {unknown[0]!r}; those there are: {self.possible_agents}"
            )
        alive = self._roster.alive if slots is None else self._roster.alive[slots]
        batches = []
        for place, agent in enumerate(self.possible_agents):
            if agent in actions:
                batches.append(actions[agent])
                continue
            if alive[:, place].any():
                row = int(np.argmax(alive[:, place]))
                slot = row if slots is None else int(slots[row])
                raise InvalidActionError(
                    f"there are no actions of agent {agent!r}, which is alive in environment {slot}"
                )
            batches.append(self._idle(agent, len(alive)))
        return batches

    def _idle(self, agent: Agent, count: int) -> Any:
        """Actions of an agent that is not there: they must only be of the space."""
        space = batch_space(self._acts[agent], count)
        space.seed(0)
        return space.sample()

    def _check_mask(self, mask: npt.NDArray[np.bool_]) -> None:
        never = ~self._roster.begun & ~mask
        if never.any():
            raise ResetMaskError(
                f"environment {np.argmax(never)} has never been reset: the first reset must "
                "include it"
            )
        if self._pool.in_flight:
            raise AlreadyPendingCallError(
                f"{self._pool.in_flight} environments are in flight: receive them before "
                "resetting others",
                "recv",
            )

    def _shaped(self, batch: Batch) -> AgentBatch:
        found = self._results(batch)
        return AgentBatch(
            batch.slots,
            self._of_each(0, found),
            self._of_each(1, found),
            self._of_each(2, found),
            self._of_each(3, found),
            self._infos(found, len(batch.slots)),
            self._by_agent(self._roster.alive[batch.slots]),
        )

    def _results(self, batch: Batch) -> list[Results]:
        """A batch as results of each agent."""
        noted, episodes = self._roster.note(self._teams.read(batch))
        return [
            results_of(
                view_of_agent(self._teams, noted, episodes, place),
                self._layouts[place],
                self._nothing[place],
                moves_on=self._moves_on,
            )
            for place in range(len(self.possible_agents))
        ]

    def _latest(self) -> ByAgent:
        """What each agent was shown last, in all environments."""
        shown = self._teams.latest()
        alive = self._roster.alive
        latest = {}
        for place, agent in enumerate(self.possible_agents):
            latest[agent] = self._teams.of_agent(shown, place)
            if self._moves_on:
                gone = np.flatnonzero(~alive[:, place])
                layout, nothing = self._layouts[place], self._nothing[place]
                latest[agent] = emptied(latest[agent], layout, nothing, gone)
        return latest

    def _infos(self, found: list[Results], rows: int) -> ByAgent:
        return {
            agent: format_infos(results[4], rows, self._info_format)
            for agent, results in zip(self._shown, found, strict=True)
        }

    def _infos_of_some(self, found: list[Results], slots: npt.NDArray[np.int64]) -> ByAgent:
        """Infos of resets of some environments, with rows for all; who lives is told of all."""
        told = {}
        for agent, results in zip(self._shown, found, strict=True):
            events, episodes = as_events(results[4], len(slots)) or ([], None)
            spread = [(int(slots[row]), info) for row, info in events], episodes
            told[agent] = format_infos(spread, self.num_envs, self._info_format)
            if self._info_format != "list":
                told[agent] |= told_alive(self.alive[agent])
        return told

    def _of_each(self, part: int, found: list[Results]) -> ByAgent:
        return {agent: results[part] for agent, results in zip(self._shown, found, strict=True)}

    def _by_agent(self, columns: Arrays) -> dict[Agent, Arrays]:
        return {agent: columns[:, place].copy() for place, agent in enumerate(self.possible_agents)}


def _batched(spaces: Spaces, count: int) -> Spaces:
    return {agent: batch_space(space, count) for agent, space in spaces.items()}
