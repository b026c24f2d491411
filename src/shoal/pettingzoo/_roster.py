"""Living agents of each environment, and statistics of each agent's episode."""

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
    """State of agents between batches.

    Args:
        num_envs: Number of environments.
        agents: Number of agents per environment.
        statistics: Whether to record return, length and time of the agents' episodes.
    """

    def __init__(self, num_envs: int, agents: int, statistics: bool) -> None:
        self.alive: npt.NDArray[np.bool_] = np.zeros((num_envs, agents), np.bool_)
        """Agents that can act next, according to the last received batch."""
        self.was_reset: npt.NDArray[np.bool_] = np.zeros(num_envs, np.bool_)
        """Environments that have been reset at least once."""
        self._is_reset = np.zeros(num_envs, np.bool_)
        self._all = np.arange(num_envs)
        self._totals = EpisodeTotals(num_envs * agents) if statistics else None
        self._start_times = np.zeros((num_envs, agents))

    def expect_reset(self, slots: npt.NDArray[np.int64]) -> None:
        """Mark the next results of these environments as resets."""
        self._is_reset[slots] = True

    def forget(self) -> None:
        """Discard the marks of resets, because no environment is in flight any more."""
        self._is_reset[:] = False

    def note(self, batch: TeamBatch) -> tuple[TeamBatch, Episodes | None]:
        """Process a batch. Agents of a crashed environment are truncated.

        Returns:
            The batch, and the finished episodes in arrays with a row per environment and a column
            per agent.
        """
        # A slice is much faster than an array of indices.
        is_whole = np.array_equal(batch.slots, self._all)
        slots: Any = slice(None) if is_whole else batch.slots
        acted = self.alive[slots] & ~self._is_reset[slots, None]
        self.alive[slots] = batch.alive
        self.was_reset[slots] = True
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
        episodes: Episodes | None = None
        if ended.any():
            seconds = np.round(now - self._start_times[slots], 6)
            episodes = (
                ended,
                np.where(ended, returns[slots], 0.0),
                np.where(ended, lengths[slots], 0),
                np.where(ended, seconds, 0.0),
            )
        started = batch.alive & ~acted | ended
        for column, value in ((returns, 0), (lengths, 0), (self._start_times, now)):
            _set(column, slots, started, value)
        return episodes


def _set(
    column: npt.NDArray[Any],
    slots: npt.NDArray[np.int64],
    where: npt.NDArray[np.bool_],
    value: float,
) -> None:
    rows, places = np.nonzero(where)
    column[slots[rows], places] = value
