"""The answers that have arrived for slots in flight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal import _native
from shoal._spaces import Layout
from shoal.pools._base import Batch
from shoal.pools._batches import batch_rows, join_batches

__all__ = ["Arrivals"]

Row = tuple[Batch, int]
"""A row of a batch."""

Answer = Row | BaseException


class Arrivals:
    """Keeps the answers for slots in flight until the caller receives them.

    Slots are sent with the number of a request. An answer counts only for slots that are in flight
    under its request: late answers and duplicates are ignored.

    Args:
        layout: The layout of observations.
        num_envs: The number of slots.
    """

    def __init__(self, layout: Layout, num_envs: int) -> None:
        self._layout = layout
        self.ledger = _native.SlotLedger(num_envs)
        """The slots in flight, in the order of sending, and the slots that are done."""
        self._answers: dict[int, Answer] = {}

    def expect(self, slots: Iterable[int], request: int) -> None:
        """Note that slots were sent with this request."""
        chosen = _numbers(slots)
        self._discard(chosen)
        self.ledger.mark_in_flight(chosen, request)

    def reassign(self, slots: Iterable[int], request: int) -> None:
        """Note that these slots in flight will be answered under another request."""
        self.ledger.reassign(_numbers(slots), request)

    def withdraw(self, request: int) -> None:
        """Note that this request was not sent."""
        self.ledger.clear(self.ledger.awaited(request))

    def add(self, request: int, batch: Batch) -> None:
        """Keep rows that have arrived."""
        rows = self.ledger.due(batch.slots, request)
        due = batch.slots[rows]
        self._answers.update(
            zip(due.tolist(), ((batch, row) for row in rows.tolist()), strict=True)
        )
        self.ledger.mark_done(due, request)

    def put(self, answers: Mapping[int, Answer], request: int) -> None:
        """Keep an answer for each of these slots, which are in flight under this request."""
        self._answers.update(answers)
        self.ledger.mark_done(_numbers(answers), request)

    def done(self) -> dict[int, Answer]:
        """Return the answer of each slot that is done."""
        awaited = set(self.missing())
        in_flight = self.ledger.slots_in_flight().tolist()
        return {slot: self._answers[slot] for slot in in_flight if slot not in awaited}

    def fail(self, request: int, slots: Sequence[int] | None, error: BaseException) -> bool:
        """Keep an error for these slots of a request; None for all that are awaited.

        Returns:
            Whether any slot is in flight under this request.
        """
        awaited = self.ledger.awaited(request)
        failed = awaited if slots is None else awaited[np.isin(awaited, slots)]
        self._answers.update(dict.fromkeys(failed.tolist(), error))
        self.ledger.mark_done(failed, request)
        return bool(self.ledger.slots_in_flight(request).size)

    def clear(self) -> None:
        """Forget all slots in flight and all answers."""
        self.ledger.clear_all()
        self._answers.clear()

    def is_complete(self, request: int) -> bool:
        """Whether all slots of a request are done."""
        return not self.ledger.awaited(request).size

    def missing(self) -> list[int]:
        """Return the slots in flight that are not done."""
        missing: list[int] = self.ledger.awaited().tolist()
        return missing

    def has(self, wanted: _native.Wanted) -> bool:
        """Whether all slots that ``recv`` waits for are done."""
        return not self.ledger.missing(wanted)

    def take_wanted(self, wanted: _native.Wanted) -> Batch:
        """Return the rows that ``recv`` has waited for; see :meth:`take`."""
        return self.take(self.ledger.select(wanted).tolist())

    def take(self, slots: Sequence[int]) -> Batch:
        """Return the rows of these slots, in this order; they are no longer in flight.

        An error is raised, once, in place of the rows; slots that have not failed stay in flight.
        """
        errors = {
            slot: answer
            for slot in slots
            if isinstance(answer := self._answers[slot], BaseException)
        }
        if errors:
            self._remove(errors)
            raise next(iter(errors.values()))
        # Joined before anything is removed, since an interrupt may arrive in between.
        batch = self._joined(slots)
        self._remove(slots)
        return batch

    def _joined(self, slots: Sequence[int]) -> Batch:
        parts: dict[int, tuple[Batch, list[int]]] = {}
        for slot in slots:
            answer = self._answers[slot]
            assert isinstance(answer, tuple)
            batch, row = answer
            parts.setdefault(id(batch), (batch, []))[1].append(row)
        joined = join_batches(
            self._layout, [self._rows(batch, rows) for batch, rows in parts.values()]
        )
        if np.array_equal(joined.slots, slots):
            return joined
        row_of_slot = {slot: row for row, slot in enumerate(joined.slots.tolist())}
        return batch_rows(self._layout, joined, [row_of_slot[slot] for slot in slots])

    def _rows(self, batch: Batch, rows: list[int]) -> Batch:
        if rows == list(range(len(batch.slots))):
            return batch
        return batch_rows(self._layout, batch, rows)

    def _remove(self, slots: Iterable[int]) -> None:
        chosen = _numbers(slots)
        self.ledger.clear(chosen)
        self._discard(chosen)

    def _discard(self, slots: npt.NDArray[np.int64]) -> None:
        if self._answers:
            for slot in slots.tolist():
                self._answers.pop(slot, None)


def _numbers(slots: Iterable[Any]) -> npt.NDArray[np.int64]:
    return np.fromiter(slots, np.int64)
