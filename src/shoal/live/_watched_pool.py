"""A pool that counts its batches for the live page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._native import Meter
from shoal._types import CRASHED, ColumnInfos, RawInfos, Results
from shoal.live._watcher import Watcher
from shoal.pools import Batch, Pool
from shoal.pools._base import SlotChoice, slot_numbers
from shoal.pools._forwarding import ForwardingPool

__all__ = ["WatchedPool"]


class WatchedPool(ForwardingPool[Pool]):
    """A pool around another one that reports its batches to a watcher.

    Args:
        pool: The pool that steps the environments.
        watcher: Receives what is reported.
        meter: Counts steps and episodes.
        on_end: Called when the pool has been closed.
    """

    def __init__(
        self, pool: Pool, watcher: Watcher, meter: Meter, on_end: Callable[[], None]
    ) -> None:
        super().__init__(pool)
        self._watcher = watcher
        self._meter = meter
        self._on_end = on_end
        self._resets = np.zeros(pool.num_envs, np.bool_)  # slots whose reset is in flight
        # A closure in place of the method, since it is called for every step.
        self.step = _counted(  # type: ignore[method-assign, assignment]
            pool.step, meter, self._note_step, watcher.log_error
        )

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        super().reset(slots, seeds, options)
        self._resets[slot_numbers(slots, self.num_envs)] = True

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, and return those that are done."""
        self._meter.begin()
        try:
            batch = super().recv(min_slots, timeout, max_slots=max_slots, slots=slots)
        except Exception as error:
            if not isinstance(error, TimeoutError):
                self._watcher.log_error(error)
            raise
        self._note_batch(batch)
        return batch

    def begin_step(self, actions: Any, **options: Any) -> None:
        """Check actions for every slot, and begin to step them."""
        self._meter.begin()
        super().begin_step(actions, **options)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` began."""
        try:
            results = super().end_step(timeout)
        except Exception as error:
            if not isinstance(error, TimeoutError):
                self._watcher.log_error(error)
            raise
        is_due = self._meter.end(results[1], results[2], results[3])
        self._note_step(results, is_due)
        return results

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""
        super().drop()
        self._resets[:] = False

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment, and report that they are closed."""
        try:
            super().close(terminate=terminate, timeout=timeout)
        finally:
            self._watcher.end("closed")
            self._on_end()

    def abandon(self) -> None:
        """Release everything, for a vector that was garbage-collected without being closed."""
        super().abandon()
        if not sys.is_finalizing():  # the threads of the page are gone by then
            self._watcher.end("abandoned")
            self._on_end()

    def _note_step(self, results: Results, is_due: bool) -> None:
        if results[4] is not None and self.restarts:
            self._note_crashes(results[4], None)
        if is_due:
            self._watcher.on_batch(self.inner, results[0])

    def _note_batch(self, batch: Batch) -> None:
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
            self._watcher.on_batch(self.inner, batch.observations if is_whole else None)

    def _note_crashes(
        self, infos: RawInfos | ColumnInfos, slots: npt.NDArray[np.int64] | None
    ) -> None:
        if isinstance(infos, ColumnInfos):  # kernels do not crash
            return
        rows = [row for row, info in infos[0] if CRASHED in info]
        if rows:
            lost = np.array(rows, np.int64) if slots is None else slots[rows]
            self._meter.reset(lost)  # a new episode has begun
            self._watcher.log_crash(lost.tolist())


def _counted(
    step: Callable[[Any], Results],
    meter: Meter,
    note_step: Callable[[Results, bool], None],
    failed: Callable[[BaseException], None],
) -> Callable[[Any], Results]:
    """Return a step that is counted; local names make it cheaper than a method."""
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
            note_step(results, is_due)
        return results

    return counted
