"""Slots that are reset when they are told to, whatever their pool does by itself."""

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
    """A pool with autoreset switched off, whatever its autoreset mode is.

    A step gives the observation with which an episode has ended. Where the next episode has begun
    by then (in the mode SAME_STEP, after a crash, after :meth:`begin`), the slot's next reset hands
    out what that has begun with, instead of beginning another one. In NEXT_STEP, a slot that is
    reset before its next step is not reset again by itself.

    Batches are the caller's to keep and to change.

    Args:
        pool: What steps the environments.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._resets_at_once = pool.autoreset_mode is AutoresetMode.SAME_STEP
        self._may_lose_observations = pool.restarts and not self._resets_at_once
        self._all_slots = np.arange(pool.num_envs)
        self._begun: dict[int, _Beginning] = {}

    def begin(self, seeds: Sequence[int | None]) -> None:
        """Reset every slot with its seed; the next reset hands out the observations."""
        _, infos = self.reset(None, seeds)
        told = dict(infos)
        self._begun = {
            slot: _Beginning(seed, told.get(slot, {})) for slot, seed in enumerate(seeds)
        }

    def reset(
        self,
        slots: SlotNumbers | None = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, list[Event]]:
        """Begin episodes in these slots, None for all, with a seed for each slot of the pool.

        Returns the newest observations of all slots, and the infos of those that were reset. With
        seeds or options it always begins new episodes; with options alone, those that
        :meth:`begin` has begun begin anew with the same seeds.
        """
        pool = self._pool
        chosen = (self._all_slots if slots is None else slots).tolist()
        begun = {slot: self._begun.pop(slot) for slot in chosen if slot in self._begun}
        due = chosen
        if seeds is None and not options:
            due = [slot for slot in chosen if slot not in begun]
        if seeds is None:
            due_seeds = [begun[slot].seed if slot in begun else None for slot in due]
        else:
            due_seeds = [seeds[slot] for slot in due]
        told = [(slot, begun[slot].info) for slot in begun.keys() - due]
        if not due:
            return self._own(pool.latest()), told
        pool.reset(due, due_seeds, options)
        batch = pool.recv()
        told += [(due[row], info) for row, info in (batch.raw_infos or ([], None))[0]]
        observations = batch.observations if len(due) == pool.num_envs else pool.latest()
        return self._own(observations), told

    def step(self, actions: Any, slots: SlotNumbers | None = None) -> Batch:
        """Step these slots, None for all.

        ``infos`` of the batch are those of the steps alone, as a pool gives them.
        """
        pool = self._pool
        chosen = self._all_slots if slots is None else slots
        before = pool.latest(chosen) if self._may_lose_observations else None
        if slots is None:
            batch = Batch(chosen, *pool.step(actions))
            self._begun.clear()
        else:
            pool.send(actions, slots)
            batch = pool.recv(slots=slots)
            for slot in slots.tolist():
                self._begun.pop(slot, None)
        batch = Batch(chosen, *self._own(tuple(batch[1:])))
        if not (self._resets_at_once or self._may_lose_observations):
            return batch
        ended = batch.terminated | batch.truncated
        return self._with_final_observations(batch, before) if ended.any() else batch

    def _own(self, batch: Any) -> Any:
        return batch if self._pool.copy else deepcopy(batch)

    def _with_final_observations(self, batch: Batch, before: Any) -> Batch:
        """The batch as it was before slots of it were reset."""
        events, episodes = batch.raw_infos or ([], None)
        finals = {row: info for row, info in events if info.keys() == FINAL_KEYS}
        infos = {row: dict(info["final_info"]) for row, info in finals.items()}
        begun: dict[int, dict[str, Any]] = {}
        for row, info in events:
            if info.keys() != FINAL_KEYS:  # a slot that was restarted tells twice
                (begun if row in finals else infos).setdefault(row, {}).update(info)
        for row in np.flatnonzero(batch.terminated | batch.truncated).tolist():
            slot = int(batch.slots[row])
            if self._resets_at_once:
                final = finals.get(row, {}).get("final_obs")
                if final is None:
                    raise ValueError(
                        f"slot {slot} was reset in the step that has ended its episode, and its "
                        "infos have no 'final_obs': make the vector with AutoresetMode.DISABLED"
                    )
            elif infos.get(row, {}).get(CRASHED) is True and not batch.terminated[row]:
                final = row_of(before, row)  # what the episode would have ended with is lost
            else:
                continue
            _write_row(batch.observations, row, final)
            self._begun[slot] = _Beginning(None, begun.get(row, {}))
        return batch._replace(infos=(list(infos.items()), episodes))


class _Beginning(NamedTuple):
    """An episode of which nobody has been given the first observation."""

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
