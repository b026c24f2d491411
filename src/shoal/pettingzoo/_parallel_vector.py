"""Vector of parallel environments with one batch per agent and an interface like PettingZoo's."""

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
from shoal.pettingzoo._teams import Teams, action_layout_note
from shoal.pettingzoo._views import alive_infos, emptied, results_of, view_of_agent
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
    """The result of ``recv``: one batch per agent. Row k belongs to environment ``slots[k]``.

    ``alive`` marks the environments in which each agent can act next.
    """

    slots: npt.NDArray[np.int64]
    observations: ByAgent
    rewards: dict[Agent, npt.NDArray[np.float64]]
    terminations: dict[Agent, npt.NDArray[np.bool_]]
    truncations: dict[Agent, npt.NDArray[np.bool_]]
    infos: ByAgent
    alive: dict[Agent, npt.NDArray[np.bool_]]


class ParallelVectorEnv(EnvironmentCalls):
    """A vector of parallel environments with one batch per agent.

    Agents may have different spaces. As in PettingZoo, results are dicts by agent; each value has
    one row per environment. The dicts always contain all ``possible_agents``. Where an agent has
    ended, its observation and reward are zeros and its actions are ignored. ``terminations`` and
    ``truncations`` are set only in the step in which an agent ends. ``infos[agent]["alive"]`` and
    ``alive`` mark the environments in which an agent can act next. An info that belongs to no
    agent is copied to all agents.

    An environment is reset as ``autoreset_mode`` defines when its last agent has ended. With
    SAME_STEP, an agent that ends has its final observation in ``infos[agent]["final_obs"]`` and
    receives the first observation of the new episode, or zeros if other agents are still alive.

    Args:
        teams: The environments.
        owner: The vector that owns the pool of ``teams``.
        statistics: Whether infos report the episode of each agent.
        info_format: The format of ``infos[agent]``: see :data:`shoal.vector._infos.InfoFormat`.
        seeding: How a seed is expanded to one seed per environment.
        batch_size: Number of environments that ``recv`` returns by default.

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
        self._observation_spaces: Spaces = dict(
            zip(members.agents, members.observation_spaces, strict=True)
        )
        self._action_spaces: Spaces = dict(zip(members.agents, members.action_spaces, strict=True))
        self._batched_observation_spaces = _batched(self._observation_spaces, self.num_envs)
        self._batched_action_spaces = _batched(self._action_spaces, self.num_envs)
        self._layouts = list(map(Layout.of, members.observation_spaces))
        self._empty = [
            batch_leaves(layout, create_empty_array(layout.space, 1)) for layout in self._layouts
        ]
        self._roster = Roster(self.num_envs, len(members.agents), statistics)
        self._resets_in_same_step = self.autoreset_mode is AutoresetMode.SAME_STEP

    @property
    def agents(self) -> list[Agent]:
        """Agents that can act in at least one environment."""
        places = np.flatnonzero(self._roster.alive.any(axis=0))
        return [self.possible_agents[place] for place in places.tolist()]

    @property
    def alive(self) -> dict[Agent, npt.NDArray[np.bool_]]:
        """Mask of the environments in which each agent can act next."""
        return self._by_agent(self._roster.alive)

    def observation_space(self, agent: Agent) -> Space[Any]:
        """Return the observation space of an agent; always the same object."""
        return self._observation_spaces[agent]

    def action_space(self, agent: Agent) -> Space[Any]:
        """Return the action space of an agent; always the same object."""
        return self._action_spaces[agent]

    def batched_observation_space(self, agent: Agent) -> Space[Any]:
        """Return the batched observation space of an agent."""
        return self._batched_observation_spaces[agent]

    def batched_action_space(self, agent: Agent) -> Space[Any]:
        """Return the batched action space of an agent."""
        return self._batched_action_spaces[agent]

    def reset(
        self, seed: Seed = None, options: dict[str, Any] | None = None
    ) -> tuple[ByAgent, ByAgent]:
        """Start new episodes in all environments, or in those that a mask selects.

        Args:
            seed: None, one integer, or a list with one integer (or None) per environment.
            options: Passed to each environment, without ``"reset_mask"``, which selects
                environments.

        Returns:
            Dicts by agent with the observations of all environments, and with the infos of those
            that were reset.
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
        results = self._results(self._pool.recv())
        if mask is None:
            return self._column(0, results), self._infos(results, self.num_envs)
        return self._latest(), self._infos_of_slots(results, slots)

    def step(
        self, actions: Mapping[Agent, Any]
    ) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """Step all environments.

        Args:
            actions: A batch of actions per agent. Agents that cannot act in any environment may be
                omitted.

        Returns:
            Dicts by agent: observations, rewards, terminations, truncations and infos.

        Raises:
            InvalidActionError: If an agent is missing or unknown, or its actions are invalid. No
                environment is stepped.
        """
        acts = self._teams.actions_by_agent(self._checked(actions, None))
        with action_layout_note(self._teams):
            results = self._pool.step(acts)
        return self._agent_batch(Batch(np.arange(self.num_envs), *results))[1:6]

    def send(self, actions: Mapping[Agent, Any], slots: SlotChoice = None) -> None:
        """Start a step of these environments, with one row of actions per environment."""
        chosen = slot_numbers(slots, self.num_envs)
        acts = self._teams.actions_by_agent(self._checked(actions, chosen))
        with action_layout_note(self._teams):
            self._pool.send(acts, chosen)

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        slots: SlotChoice = None,
    ) -> AgentBatch:
        """Receive environments that were sent, in the order in which they finish.

        Args:
            min_slots: Minimum number of environments to wait for. Defaults to ``batch_size``, or to
                all that are in flight if there is no batch size.
            timeout: Timeout in seconds; None for no limit.
            slots: Wait for exactly these environments, and return them in this order.

        Raises:
            ReceiveTimeoutError: If the timeout has expired. The environments stay in flight.
        """
        max_slots = None
        if min_slots is None and slots is None and self._batch_size is not None:
            min_slots = max_slots = min(self._batch_size, self._pool.in_flight) or None
        batch = self._pool.recv(min_slots, timeout, max_slots=max_slots, slots=slots)
        return self._agent_batch(batch)

    def close(self) -> None:
        """Close all environments. A second call does nothing."""
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
        """Return a batch of actions per agent, with arbitrary actions for omitted agents."""
        if not isinstance(actions, Mapping):
            raise InvalidActionError(
                f"actions must be a dict with a batch for each agent, got {type(actions).__name__}"
            )
        unknown = [agent for agent in actions if agent not in self._action_spaces]
        if unknown:
            raise InvalidActionError(
                f"there is no agent {unknown[0]!r}, the possible agents are {self.possible_agents}"
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
                    f"actions are missing for agent {agent!r}, which is alive in environment {slot}"
                )
            batches.append(self._arbitrary_actions(agent, len(alive)))
        return batches

    def _arbitrary_actions(self, agent: Agent, count: int) -> Any:
        space = batch_space(self._action_spaces[agent], count)
        space.seed(0)
        return space.sample()

    def _check_mask(self, mask: npt.NDArray[np.bool_]) -> None:
        never_reset = ~self._roster.was_reset & ~mask
        if never_reset.any():
            raise ResetMaskError(
                f"environment {np.argmax(never_reset)} has never been reset: the first reset must "
                "include it"
            )
        if self._pool.in_flight:
            raise AlreadyPendingCallError(
                f"{self._pool.in_flight} environments are in flight: receive them before "
                "resetting others",
                "recv",
            )

    def _agent_batch(self, batch: Batch) -> AgentBatch:
        results = self._results(batch)
        return AgentBatch(
            batch.slots,
            self._column(0, results),
            self._column(1, results),
            self._column(2, results),
            self._column(3, results),
            self._infos(results, len(batch.slots)),
            self._by_agent(self._roster.alive[batch.slots]),
        )

    def _results(self, batch: Batch) -> list[Results]:
        """Convert a batch to results per agent."""
        team_batch, episodes = self._roster.note(self._teams.read(batch))
        return [
            results_of(
                view_of_agent(self._teams, team_batch, episodes, place),
                self._layouts[place],
                self._empty[place],
                moves_on=self._resets_in_same_step,
            )
            for place in range(len(self.possible_agents))
        ]

    def _latest(self) -> ByAgent:
        """Return the newest observations of each agent in all environments."""
        observations = self._teams.latest()
        alive = self._roster.alive
        latest = {}
        for place, agent in enumerate(self.possible_agents):
            latest[agent] = self._teams.of_agent(observations, place)
            if self._resets_in_same_step:
                ended = np.flatnonzero(~alive[:, place])
                layout, empty = self._layouts[place], self._empty[place]
                latest[agent] = emptied(latest[agent], layout, empty, ended)
        return latest

    def _infos(self, results: list[Results], rows: int) -> ByAgent:
        return {
            agent: format_infos(agent_results[4], rows, self._info_format)
            for agent, agent_results in zip(self.possible_agents, results, strict=True)
        }

    def _infos_of_slots(self, results: list[Results], slots: npt.NDArray[np.int64]) -> ByAgent:
        """Format the infos of these environments with rows for all environments.

        ``alive`` is reported for all environments.
        """
        infos = {}
        for agent, agent_results in zip(self.possible_agents, results, strict=True):
            events, episodes = as_events(agent_results[4], len(slots)) or ([], None)
            spread = [(int(slots[row]), info) for row, info in events], episodes
            infos[agent] = format_infos(spread, self.num_envs, self._info_format)
            if self._info_format != "list":
                infos[agent] |= alive_infos(self.alive[agent])
        return infos

    def _column(self, index: int, results: list[Results]) -> ByAgent:
        return {
            agent: agent_results[index]
            for agent, agent_results in zip(self.possible_agents, results, strict=True)
        }

    def _by_agent(self, columns: Arrays) -> dict[Agent, Arrays]:
        return {agent: columns[:, place].copy() for place, agent in enumerate(self.possible_agents)}


def _batched(spaces: Spaces, count: int) -> Spaces:
    return {agent: batch_space(space, count) for agent, space in spaces.items()}
