"""A pool in which every agent of every multi-agent environment is a slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, create_empty_array

from shoal._spaces import Layout, VectorSpaces
from shoal._spaces.leaves import batch_leaves, batch_of_leaves, take_rows
from shoal._types import Results
from shoal.errors import ResetMaskError
from shoal.pettingzoo._agent_rows import check_alike
from shoal.pettingzoo._roster import Roster
from shoal.pettingzoo._teams import Teams, action_layout_note
from shoal.pettingzoo._views import emptied, results_of, view_of_rows
from shoal.pools._base import Batch, Pool, SlotChoice, WorkerState, checked_seeds, slot_numbers
from shoal.pools._environments import Called
from shoal.pools._forwarding import ForwardingPool

__all__ = ["AgentsPool"]


class AgentsPool(ForwardingPool[Pool]):
    """A pool around the pool of teams whose agents have equal spaces.

    Slot ``k`` is agent ``k % agents`` of environment ``k // agents``. Slots are sent, reset and
    received by whole environments, since these step and reset all of their agents at once.

    Args:
        teams: The environments. The pool owns them.
        statistics: Whether to report return, length and time of each agent's episode.

    Raises:
        SpaceMismatchError: The agents' spaces are not equal.
    """

    def __init__(self, teams: Teams, *, statistics: bool = False) -> None:
        check_alike(teams.members)
        super().__init__(teams.pool)
        self.teams = teams
        self.agents = teams.members.agents
        pool, count = teams.pool, len(self.agents)
        self.num_envs = pool.num_envs * count
        self.copy = pool.copy or teams.joins_by_copying
        shown, action = teams.members.observation_spaces[0], teams.members.action_spaces[0]
        self.spaces = VectorSpaces(
            shown, batch_space(shown, self.num_envs), action, batch_space(action, self.num_envs)
        )
        self.roster = Roster(pool.num_envs, count, statistics)
        self._layout = Layout.of(shown)
        self._nothing = batch_leaves(self._layout, create_empty_array(shown, 1))
        self._moves_on = self.autoreset_mode is AutoresetMode.SAME_STEP

    @property
    def envs(self) -> None:
        """No list of environments, since a slot is not an environment."""

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Which slots have an agent that can act next."""
        return self.roster.alive.ravel().copy()

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        return self.inner.in_flight * len(self.agents)

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets of whole environments, each with the seed of its first slot."""
        chosen = self._environments(slots)
        count = len(self.agents)
        given = checked_seeds(seeds, len(chosen) * count)
        self.inner.reset(chosen, given[::count], options)
        self.roster.expect_reset(chosen)

    def send(self, actions: Any, slots: SlotChoice = None, **options: Any) -> None:
        """Check actions, one for each of these slots, and queue the steps of their environments."""
        chosen = self._environments(slots)
        acts = self.teams.actions_in_rows(actions, chosen)
        with action_layout_note(self.teams):
            self.inner.send(acts, chosen, **options)

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, and return those that are done, by whole environments."""
        count = len(self.agents)
        least = None if min_slots is None else -(-min_slots // count)
        most = None if max_slots is None else max(1, max_slots // count)
        wanted = None if slots is None else self._environments(slots)
        batch = self.inner.recv(least, timeout, max_slots=most, slots=wanted)
        rows = (batch.slots[:, None] * count + np.arange(count)).ravel()
        return Batch(rows, *self._results(batch))

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        acts = self.teams.actions_in_rows(actions, None)
        with action_layout_note(self.teams):
            results = self.inner.step(acts)
        return self._round(results)

    def begin_step(self, actions: Any, **options: Any) -> None:
        """Check actions for every slot, and begin to step them."""
        acts = self.teams.actions_in_rows(actions, None)
        with action_layout_note(self.teams):
            self.inner.begin_step(acts, **options)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` began."""
        return self._round(self.inner.end_step(timeout))

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots, as a batch, without a step."""
        chosen, count = slot_numbers(slots, self.num_envs), len(self.agents)
        environments = np.unique(chosen // count)
        leaves = batch_leaves(self._layout, self.teams.in_rows(self.teams.latest(environments)))
        rows = np.searchsorted(environments, chosen // count) * count + chosen % count
        latest = batch_of_leaves(self._layout, *take_rows(leaves, rows))
        if not self._moves_on:
            return latest
        gone = np.flatnonzero(~self.alive[chosen])
        return emptied(latest, self._layout, self._nothing, gone)

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""
        self.inner.drop()
        self.roster.forget()

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call the environment of each of these slots, once even if it has several of them."""
        owners = slot_numbers(slots, self.num_envs) // len(self.agents)
        environments, places = np.unique(owners, return_inverse=True)
        results = self.inner.call(what, *args, slots=environments, **kwargs)
        return [results[place] for place in places.tolist()]

    def worker_states(self) -> list[WorkerState]:
        """Return what drives the environments, with the slots of all their agents."""
        agents = len(self.agents)
        return [
            state._replace(slots=range(state.slots.start * agents, state.slots.stop * agents))
            for state in self.inner.worker_states()
        ]

    def _round(self, results: Results) -> Results:
        return self._results(Batch(np.arange(self.inner.num_envs), *results))

    def _results(self, batch: Batch) -> Results:
        noted, episodes = self.roster.note(self.teams.read(batch))
        view = view_of_rows(self.teams, noted, episodes)
        return results_of(view, self._layout, self._nothing, moves_on=self._moves_on)

    def _environments(self, slots: SlotChoice) -> npt.NDArray[np.int64]:
        """Return the environments of these slots, which must be whole and in order."""
        if slots is None:
            return np.arange(self.inner.num_envs)
        chosen, count = slot_numbers(slots, self.num_envs), len(self.agents)
        environments = chosen[::count] // count
        whole = (environments[:, None] * count + np.arange(count)).ravel()
        if not np.array_equal(chosen, whole):
            raise ResetMaskError(
                f"an environment steps and resets all of its {count} agents at once: slots must be "
                f"those of whole environments, in order, got {chosen.tolist()}. (A frontend that "
                "resets slots in the step in which they end needs autoreset_mode='SameStep')"
            )
        return environments
