"""Explicit resets on a pool of any autoreset mode."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from shoal._types import CRASHED, FINAL_KEYS, Event, row_of
from shoal.pools import Batch, Pool

__all__ = ["ManualResets"]

SlotNumbers = npt.NDArray[np.int64]


class ManualResets:
    """A pool whose slots behave as if autoreset were disabled.

    A step returns the final observation of an episode. If the next episode has already started
    (with SAME_STEP, after a crash or after :meth:`begin`), the next reset of the slot returns its
    first observation instead of starting another episode. With NEXT_STEP, an explicit reset
    replaces the automatic one.

    The caller may keep and modify the returned batches.

    Args:
        pool: The pool that steps the environments.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._is_same_step = pool.autoreset_mode is AutoresetMode.SAME_STEP
        self._may_lose_observations = pool.restarts and not self._is_same_step
        self._all_slots = np.arange(pool.num_envs)
        self._started: dict[int, _StartedEpisode] = {}

    def begin(self, seeds: Sequence[int | None]) -> None:
        """Reset every slot with its seed; the next reset returns the observations."""
        _, events = self.reset(None, seeds)
        infos = dict(events)
        self._started = {
            slot: _StartedEpisode(seed, infos.get(slot, {})) for slot, seed in enumerate(seeds)
        }

    def reset(
        self,
        slots: SlotNumbers | None = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, list[Event]]:
        """Start episodes.

        With seeds or options, new episodes are always started. With options only, episodes started
        by :meth:`begin` are started again with the same seeds.

        Args:
            slots: The slots; None for all.
            seeds: A seed for each slot of the pool.
            options: The reset options.

        Returns:
            The newest observations of all slots, and the infos of the slots that were reset.
        """
        pool = self._pool
        chosen = (self._all_slots if slots is None else slots).tolist()
        started = {slot: self._started.pop(slot) for slot in chosen if slot in self._started}
        due = chosen
        if seeds is None and not options:
            due = [slot for slot in chosen if slot not in started]
        if seeds is None:
            due_seeds = [started[slot].seed if slot in started else None for slot in due]
        else:
            due_seeds = [seeds[slot] for slot in due]
        events = [(slot, started[slot].info) for slot in started.keys() - due]
        if not due:
            return self._copied(pool.latest()), events
        pool.reset(due, due_seeds, options)
        batch = pool.recv()
        events += [(due[row], info) for row, info in (batch.raw_infos or ([], None))[0]]
        observations = batch.observations if len(due) == pool.num_envs else pool.latest()
        return self._copied(observations), events

    def step(self, actions: Any, slots: SlotNumbers | None = None) -> Batch:
        """Step the given slots, or all slots if None.

        The batch has the infos of steps only, without those of resets.
        """
        pool = self._pool
        chosen = self._all_slots if slots is None else slots
        before = pool.latest(chosen) if self._may_lose_observations else None
        if slots is None:
            batch = Batch(chosen, *pool.step(actions))
            self._started.clear()
        else:
            pool.send(actions, slots)
            batch = pool.recv(slots=slots)
            for slot in slots.tolist():
                self._started.pop(slot, None)
        batch = Batch(chosen, *self._copied(tuple(batch[1:])))
        if not (self._is_same_step or self._may_lose_observations):
            return batch
        ended = batch.terminated | batch.truncated
        return self._with_final_observations(batch, before) if ended.any() else batch

    def _copied(self, batch: Any) -> Any:
        return batch if self._pool.copy else deepcopy(batch)

    def _with_final_observations(self, batch: Batch, before: Any) -> Batch:
        """Replace the first observations of new episodes by final observations."""
        events, episodes = batch.raw_infos or ([], None)
        finals = {row: info for row, info in events if info.keys() == FINAL_KEYS}
        infos = {row: dict(info["final_info"]) for row, info in finals.items()}
        reset_infos: dict[int, dict[str, Any]] = {}
        for row, info in events:
            if info.keys() != FINAL_KEYS:  # a restarted slot has two infos
                (reset_infos if row in finals else infos).setdefault(row, {}).update(info)
        for row in np.flatnonzero(batch.terminated | batch.truncated).tolist():
            slot = int(batch.slots[row])
            if self._is_same_step:
                final = finals.get(row, {}).get("final_obs")
                if final is None:
                    raise ValueError(
                        f"slot {slot} was reset in the step that ended its episode, but its infos "
                        "have no 'final_obs': create the vector with AutoresetMode.DISABLED"
                    )
            elif infos.get(row, {}).get(CRASHED) is True and not batch.terminated[row]:
                final = row_of(before, row)  # the final observation of a crash is unknown
            else:
                continue
            _write_row(batch.observations, row, final)
            self._started[slot] = _StartedEpisode(None, reset_infos.get(row, {}))
        return batch._replace(infos=(list(infos.items()), episodes))


class _StartedEpisode(NamedTuple):
    """A started episode whose first observation has not been returned to the caller."""

    seed: int | None
    info: dict[str, Any]


def _write_row(batch: Any, row: int, value: Any) -> None:
    if isinstance(batch, dict):
        for key, part in batch.items():
            _write_row(part, row, value[key])
    elif isinstance(batch, tuple):
        for part, part_value in zip(batch, value, strict=True):
            _write_row(part, row, part_value)
    else:
        batch[row] = value
