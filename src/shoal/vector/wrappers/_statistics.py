"""A wrapper that records return, length and duration of each episode."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import gymnasium.vector
import numpy as np
import numpy.typing as npt

from shoal._wrapper_core.episodes import EpisodeTotals
from shoal._wrapper_core.state_files import State
from shoal.vector._seeding import Seed
from shoal.vector.wrappers._base import Arrays, Step, VectorWrapper
from shoal.vector.wrappers._episodes import EpisodeTracker
from shoal.vector.wrappers._state import SavesState

__all__ = ["RecordEpisodeStatistics"]

_QUEUES = ("return_queue", "length_queue", "time_queue")


class RecordEpisodeStatistics(SavesState, VectorWrapper):
    """Reports return, length and seconds of each episode in the infos of the step that ends it.

    The infos get ``episode``, a dict of the columns ``r``, ``l`` and ``t``, and the mask
    ``_episode``. If infos are a list, the dict of each slot whose episode has ended gets an
    ``episode`` with ``r``, ``l`` and ``t``. ``return_queue``, ``length_queue`` and ``time_queue``
    hold the latest episodes, and ``episode_count`` is the total number of episodes.

    Args:
        env: The vector to wrap.
        buffer_length: Maximum number of episodes in the queues.
        stats_key: The key in the infos.

    Example:
        >>> import shoal
        >>> envs = shoal.make("CartPole-v1", num_envs=2, backend="inline", max_episode_steps=3)
        >>> with RecordEpisodeStatistics(envs) as envs:
        ...     _ = envs.reset(seed=0)
        ...     for _ in range(3):
        ...         *_, infos = envs.step([0, 1])
        ...     infos["episode"]["r"], infos["episode"]["l"]
        (array([3., 3.]), array([3, 3]))
    """

    _kind = "shoal.vector.wrappers.RecordEpisodeStatistics"
    _any_length = frozenset(_QUEUES)

    def __init__(
        self,
        env: gymnasium.vector.VectorEnv[Any, Any, Any],
        buffer_length: int = 100,
        stats_key: str = "episode",
    ) -> None:
        super().__init__(env)
        self.episode_count = 0
        self.episode_start_times = np.zeros(self.num_envs)
        self.return_queue: deque[np.float64] = deque(maxlen=buffer_length)
        self.length_queue: deque[np.int64] = deque(maxlen=buffer_length)
        self.time_queue: deque[np.float64] = deque(maxlen=buffer_length)
        self._stats_key = stats_key
        self._totals = EpisodeTotals(self.num_envs)
        self._episodes = EpisodeTracker(env)

    @property
    def episode_returns(self) -> Arrays:
        """The return so far of each slot's current episode."""
        return self._totals.returns

    @property
    def episode_lengths(self) -> Arrays:
        """The length so far of each slot's current episode."""
        return self._totals.lengths

    @property
    def prev_dones(self) -> npt.NDArray[np.bool_]:
        """The slots whose episode has ended and that were not reset since."""
        return self._episodes.finished

    def reset(self, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector, and the statistics of the slots that were reset."""
        slots, observations, infos = self._reset_slots(seed, options)
        self._start_episodes(slots)
        self._episodes.start(slots)
        return observations, infos

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and report the episodes that have ended."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        transitions = self._episodes.step(terminated, truncated, infos)
        if transitions.reset.any():
            self._start_episodes(transitions.reset)
            self._totals.add(rewards, ~transitions.reset)
        else:
            self._totals.add(rewards)
        if transitions.ended.any():
            infos = self._report(infos, transitions.ended)
            self._start_episodes(transitions.restarted)
        return observations, rewards, terminated, truncated, infos

    def _start_episodes(self, slots: Any) -> None:
        self._totals.clear(slots)
        self.episode_start_times[slots] = time.perf_counter()

    def _report(self, infos: Any, ended: npt.NDArray[np.bool_]) -> Any:
        """Add the episodes that have ended to the queues, and return infos that include them."""
        key = self._stats_key
        seconds = np.round(time.perf_counter() - self.episode_start_times, 6)
        columns = {"r": self.episode_returns, "l": self.episode_lengths, "t": seconds}
        slots = np.flatnonzero(ended).tolist()
        if isinstance(infos, list):
            self._refuse_overwriting(key for slot in slots for key in infos[slot])
            extended: Any = list(infos)
            for slot in slots:
                episode = {name: column[slot] for name, column in columns.items()}
                extended[slot] = {**infos[slot], key: episode}
        else:
            self._refuse_overwriting(infos)
            masked = {name: np.where(ended, column, 0) for name, column in columns.items()}
            extended = {**infos, key: masked, f"_{key}": ended}
        self.episode_count += len(slots)
        self.return_queue.extend(self.episode_returns[ended])
        self.length_queue.extend(self.episode_lengths[ended])
        self.time_queue.extend(seconds[ended])
        return extended

    def _refuse_overwriting(self, keys: Any) -> None:
        present = list(keys)
        if self._stats_key in present or f"_{self._stats_key}" in present:
            raise ValueError(
                f"Attempted to add episode stats with key '{self._stats_key}' but this key already "
                f"exists in info: {present}"
            )

    def _state(self) -> State:
        return {
            "num_envs": np.array(self.num_envs),
            "returns": self._totals.returns,
            "lengths": self._totals.lengths,
            "seconds": time.perf_counter() - self.episode_start_times,
            "over": self._episodes.finished,
            "episode_count": np.array(self.episode_count),
            "return_queue": np.array(self.return_queue, np.float64),
            "length_queue": np.array(self.length_queue, np.int64),
            "time_queue": np.array(self.time_queue, np.float64),
        }

    def _restore(self, state: State) -> None:
        self._totals.returns[:] = state["returns"]
        self._totals.lengths[:] = state["lengths"]
        self.episode_start_times[:] = time.perf_counter() - state["seconds"]
        self._episodes.finished[:] = state["over"]
        self.episode_count = int(state["episode_count"])
        for name in _QUEUES:
            queue: deque[Any] = getattr(self, name)
            queue.clear()
            queue.extend(state[name])
