"""What has come for the slots in flight, and what is still waited for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from shoal._spaces import Layout
from shoal.pools._base import Batch
from shoal.pools._batches import batch_rows, join_batches
from shoal.pools._recv_condition import Wanted

__all__ = ["Arrivals"]


class Arrivals:
    """Slots in flight by the numbers of the requests that they were sent with.

    An answer counts only for a slot that is in flight under its number: what comes late, or twice,
    reaches nobody.

    Args:
        layout: Of the observations.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.flying: dict[int, int] = {}
        """The number of the request of each slot, in the order in which they were sent."""
        self._missing: dict[int, set[int]] = {}  # by number: the slots for which nothing has come
        self.done: dict[int, tuple[Batch, int] | BaseException] = {}
        """What has come for a slot, in the order in which it came: a row, or an error."""

    def expect(self, slots: Iterable[int], number: int) -> None:
        """These slots are in flight now."""
        fresh = dict.fromkeys(slots, number)
        for slot in fresh:
            self.done.pop(slot, None)  # an interrupt may have left what was received before
        self.flying.update(fresh)
        if fresh:
            self._missing.setdefault(number, set()).update(fresh)

    def renumber(self, slots: Iterable[int], number: int) -> None:
        """These slots, which are in flight, are now answered under another number."""
        for slot in slots:
            self._has_come(slot, self.flying[slot])
            self.flying[slot] = number
            self._missing.setdefault(number, set()).add(slot)

    def withdraw(self, number: int) -> None:
        """What was sent under this number was not sent after all."""
        for slot in [slot for slot, each in self.flying.items() if each == number]:
            del self.flying[slot]
        self._missing.pop(number, None)

    def add(self, number: int, batch: Batch) -> None:
        """Rows have come."""
        for row, slot in enumerate(batch.slots.tolist()):
            if self._is_due(slot, number):
                self.done[slot] = batch, row
                self._has_come(slot, number)

    def fail(self, number: int, slots: Sequence[int] | None, error: BaseException) -> bool:
        """An error has come, for some slots of a request or for all; whether there are any."""
        concerned = [slot for slot, each in self.flying.items() if each == number]
        for slot in concerned if slots is None else slots:
            if self._is_due(slot, number):
                self.done[slot] = error
                self._has_come(slot, number)
        return bool(concerned)

    def clear(self) -> None:
        """Forget what is in flight, and what has come."""
        self.flying.clear()
        self.done.clear()
        self._missing.clear()

    def is_complete(self, number: int) -> bool:
        """Whether nothing is waited for any more under this number."""
        return number not in self._missing

    def missing(self) -> list[int]:
        """The slots for which nothing has come."""
        return [slot for slot in self.flying if slot not in self.done]

    def wanted(
        self, min_slots: int | None, max_slots: int | None, slots: list[int] | None
    ) -> Wanted:
        """What ``recv`` with these arguments waits for; see :meth:`Wanted.of`."""
        return Wanted.of(self.flying, min_slots, max_slots, slots)

    def has(self, wanted: Wanted) -> bool:
        """Whether it has come."""
        return wanted.has_come(self.done, self.flying)

    def take_wanted(self, wanted: Wanted) -> Batch:
        """What was waited for, and has come."""
        return self.take(wanted.among(self.done, self.flying))

    def take(self, slots: Sequence[int]) -> Batch:
        """These slots, in this order; they are in flight no more.

        Raises what has come for them instead of rows, once; those that have not failed stay.
        """
        errors = {
            slot: found for slot in slots if isinstance(found := self.done[slot], BaseException)
        }
        if errors:
            self._remove(errors)
            raise next(iter(errors.values()))
        # All of it is made before anything is removed: an interrupt may come in between.
        taken = self._joined(slots)
        self._remove(slots)
        return taken

    def _joined(self, slots: Sequence[int]) -> Batch:
        parts: dict[int, tuple[Batch, list[int]]] = {}
        for slot in slots:
            come = self.done[slot]
            assert isinstance(come, tuple)
            batch, row = come
            parts.setdefault(id(batch), (batch, []))[1].append(row)
        joined = join_batches(
            self._layout, [self._rows(batch, rows) for batch, rows in parts.values()]
        )
        if np.array_equal(joined.slots, slots):
            return joined
        places = {slot: row for row, slot in enumerate(joined.slots.tolist())}
        return batch_rows(self._layout, joined, [places[slot] for slot in slots])

    def _remove(self, slots: Iterable[int]) -> None:
        for slot in slots:
            del self.flying[slot]
            self.done.pop(slot, None)

    def _has_come(self, slot: int, number: int) -> None:
        left = self._missing.get(number, set())
        left.discard(slot)
        if not left:
            self._missing.pop(number, None)

    def _is_due(self, slot: int, number: int) -> bool:
        return self.flying.get(slot) == number and slot not in self.done

    def _rows(self, batch: Batch, rows: list[int]) -> Batch:
        if rows == list(range(len(batch.slots))):
            return batch
        return batch_rows(self._layout, batch, rows)
