"""A pool whose every batch is counted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from shoal._native import Meter
from shoal._spaces import VectorSpaces
from shoal._types import CRASHED, ColumnInfos, RawInfos, Results
from shoal.live._watcher import Watcher
from shoal.pools import Batch, Pool
from shoal.pools._base import SlotChoice, WorkerState, slot_numbers
from shoal.pools._environments import Called

__all__ = ["WatchedPool"]


class WatchedPool:
    """Another pool, which it does everything by, watched.

    What that pool has besides the contract can be reached here as well.

    Args:
        pool: What steps the environments.
        watcher: Who is told.
        meter: What counts.
        on_end: Called when the pool has been closed.
    """

    # What follows is that of the pool inside.
    num_envs: int
    spaces: VectorSpaces
    autoreset_mode: AutoresetMode
    metadata: dict[str, Any]
    render_mode: str | None
    copy: bool
    restarts: bool
    envs: Any
    in_flight: int

    watched: Pool
    """The pool inside."""
    step: Callable[[Any], Results]
    """Send every slot, receive every slot."""
    _watcher: Watcher
    _meter: Meter
    _on_end: Callable[[], None]
    _resets: npt.NDArray[np.bool_]

    def __init__(
        self, pool: Pool, watcher: Watcher, meter: Meter, on_end: Callable[[], None]
    ) -> None:
        own = vars(self)  # past `__setattr__`
        own["watched"] = pool
        own["_watcher"] = watcher
        own["_meter"] = meter
        own["_on_end"] = on_end
        own["_resets"] = np.zeros(pool.num_envs, np.bool_)  # in flight
        own["step"] = _counted(pool.step, meter, self._noticed, watcher.failed)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["watched"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.watched, name, value)

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets."""
        self.watched.reset(slots, seeds, options)
        self._resets[slot_numbers(slots, self.num_envs)] = True

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Queue steps."""
        self.watched.send(actions, slots)

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for queued work."""
        self._meter.begin()
        try:
            batch = self.watched.recv(min_slots, timeout, max_slots=max_slots, slots=slots)
        except Exception as error:
            if not isinstance(error, TimeoutError):
                self._watcher.failed(error)
            raise
        self._received(batch)
        return batch

    def begin_step(self, actions: Any) -> None:
        """Begin to step every slot."""
        self._meter.begin()
        self.watched.begin_step(actions)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for what ``begin_step`` has begun."""
        try:
            results = self.watched.end_step(timeout)
        except Exception as error:
            if not isinstance(error, TimeoutError):
                self._watcher.failed(error)
            raise
        is_due = self._meter.end(results[1], results[2], results[3])
        self._noticed(results, is_due)
        return results

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""
        self.watched.drop()
        self._resets[:] = False

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots."""
        return self.watched.latest(slots)

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach each environment."""
        return self.watched.call(what, *args, slots=slots, **kwargs)

    def worker_states(self) -> list[WorkerState]:
        """Who drives the slots."""
        return self.watched.worker_states()

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment, and tell that they are."""
        try:
            self.watched.close(terminate=terminate, timeout=timeout)
        finally:
            self._watcher.end("closed")
            self._on_end()

    def abandon(self) -> None:
        """Give back everything, for a vector that is garbage and was not closed."""
        self.watched.abandon()
        if not sys.is_finalizing():  # then its threads are gone
            self._watcher.end("abandoned")
            self._on_end()

    def _noticed(self, results: Results, is_due: bool) -> None:
        if results[4] is not None and self.restarts:
            self._note_crashes(results[4], None)
        if is_due:
            self._watcher.look(self.watched, results[0])

    def _received(self, batch: Batch) -> None:
        slots = batch.slots
        if self._resets.any():
            were_reset = self._resets[slots]
            self._resets[slots] = False
            self._meter.reset(slots[were_reset])
            if were_reset.all():
                return
            stepped = ~were_reset
            is_due = self._meter.end_some(
                slots[stepped],
                batch.rewards[stepped],
                batch.terminated[stepped],
                batch.truncated[stepped],
            )
        else:
            is_due = self._meter.end_some(slots, batch.rewards, batch.terminated, batch.truncated)
        if batch.infos is not None and self.restarts:
            self._note_crashes(batch.infos, slots)
        if is_due:
            is_whole = len(slots) == self.num_envs and bool((slots[:-1] < slots[1:]).all())
            self._watcher.look(self.watched, batch.observations if is_whole else None)

    def _note_crashes(
        self, infos: RawInfos | ColumnInfos, slots: npt.NDArray[np.int64] | None
    ) -> None:
        if isinstance(infos, ColumnInfos):  # kernels do not crash
            return
        rows = [row for row, info in infos[0] if CRASHED in info]
        if rows:
            lost = np.array(rows, np.int64) if slots is None else slots[rows]
            self._meter.reset(lost)  # it is a new episode already
            self._watcher.crashed(lost.tolist())


def _counted(
    step: Callable[[Any], Results],
    meter: Meter,
    noticed: Callable[[Results, bool], None],
    failed: Callable[[BaseException], None],
) -> Callable[[Any], Results]:
    """A step that is counted: a function over names of its own, since it is called so often."""
    begin, end = meter.begin, meter.end

    def counted(actions: Any) -> Results:
        begin()
        try:
            results = step(actions)
        except Exception as error:
            failed(error)
            raise
        is_due = end(results[1], results[2], results[3])
        if is_due or results[4] is not None:
            noticed(results, is_due)
        return results

    return counted
