"""Who lives in each environment, and what each agent's episode has come to."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._types import Episodes
from shoal._wrapper_core.episodes import EpisodeTotals
from shoal.pettingzoo._teams import TeamBatch

__all__ = ["Roster"]


class Roster:
    """Keeps what a batch does not tell: what was before it.

    Args:
        num_envs: How many environments.
        agents: How many agents each of them has.
        statistics: Whether to add up the episodes of agents.
    """

    def __init__(self, num_envs: int, agents: int, statistics: bool) -> None:
        self.alive: npt.NDArray[np.bool_] = np.zeros((num_envs, agents), np.bool_)
        """Who can act, as far as it was received."""
        self.begun: npt.NDArray[np.bool_] = np.zeros(num_envs, np.bool_)
        """Which environments have ever been received."""
        self._is_reset = np.zeros(num_envs, np.bool_)
        self._all = np.arange(num_envs)
        self._totals = EpisodeTotals(num_envs * agents) if statistics else None
        self._since = np.zeros((num_envs, agents))

    def expect_reset(self, slots: npt.NDArray[np.int64]) -> None:
        """The next that is received of these environments are resets."""
        self._is_reset[slots] = True

    def forget(self) -> None:
        """Nothing is in flight any more."""
        self._is_reset[:] = False

    def note(self, batch: TeamBatch) -> tuple[TeamBatch, Episodes | None]:
        """Take in a batch. Agents whose environment was lost are truncated.

        Returns the batch, and the episodes of agents that have ended, in arrays with a row for each
        environment and a column for each agent.
        """
        # A slice where they are all there: much faster than their numbers.
        is_whole = np.array_equal(batch.slots, self._all)
        slots: Any = slice(None) if is_whole else batch.slots
        acted = self.alive[slots] & ~self._is_reset[slots, None]
        self.alive[slots] = batch.alive
        self.begun[slots] = True
        self._is_reset[slots] = False
        if batch.crashed.size:
            batch.truncated[batch.crashed] = acted[batch.crashed]
        if self._totals is None:
            return batch, None
        return batch, self._episodes(self._totals, batch, acted)

    def _episodes(
        self, totals: EpisodeTotals, batch: TeamBatch, acted: npt.NDArray[np.bool_]
    ) -> Episodes | None:
        now, slots = time.perf_counter(), batch.slots
        returns, lengths = (
            column.reshape(self.alive.shape) for column in (totals.returns, totals.lengths)
        )
        returns[slots] += np.where(acted, batch.rewards, 0.0)
        lengths[slots] += acted
        ended = batch.terminated | batch.truncated
        told: Episodes | None = None
        if ended.any():
            since = np.round(now - self._since[slots], 6)
            told = (
                ended,
                np.where(ended, returns[slots], 0.0),
                np.where(ended, lengths[slots], 0),
                np.where(ended, since, 0.0),
            )
        begun = batch.alive & ~acted | ended
        for column, value in ((returns, 0), (lengths, 0), (self._since, now)):
            _put(column, slots, begun, value)
        return told


def _put(
    column: npt.NDArray[Any],
    slots: npt.NDArray[np.int64],
    where: npt.NDArray[np.bool_],
    value: float,
) -> None:
    rows, places = np.nonzero(where)
    column[slots[rows], places] = value
