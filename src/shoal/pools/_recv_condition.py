"""What a caller of ``recv`` waits for."""

from __future__ import annotations

from collections.abc import Collection
from operator import index
from typing import NamedTuple

from gymnasium.error import NoAsyncCallError

__all__ = ["Wanted"]


class Wanted(NamedTuple):
    """These slots, or so many of those that are in flight."""

    slots: list[int] | None
    least: int
    most: int | None

    @classmethod
    def of(
        cls,
        flying: Collection[int],
        min_slots: int | None,
        max_slots: int | None,
        slots: list[int] | None,
    ) -> Wanted:
        """What ``recv`` with these arguments waits for; without any of them, all in flight.

        Raises:
            NoAsyncCallError: It is not in flight.
            ValueError: There are not so many.
        """
        waiting = len(flying)
        if not waiting:
            raise NoAsyncCallError("recv: no reset or step is in flight", "recv")
        for slot in slots or ():
            if slot not in flying:
                raise NoAsyncCallError(f"recv: slot {slot} is not in flight", "recv")
        least = waiting if min_slots is None else index(min_slots)
        if not 1 <= least <= waiting:
            raise ValueError(f"min_slots is {min_slots}, but {waiting} slots are in flight")
        if slots is None and min_slots is None:
            slots = list(flying)
        return cls(slots, least, None if max_slots is None else max(least, max_slots))

    def has_come(self, done: Collection[int], flying: Collection[int]) -> bool:
        """Whether it is done; what is not in flight any more does not count."""
        # Counted first: there may be thousands of slots, and as many looks.
        if self.slots is not None:
            return len(done) >= len(self.slots) and all(slot in done for slot in self.slots)
        return len(done) >= self.least and len(self.among(done, flying)) >= self.least

    def among(self, done: Collection[int], flying: Collection[int]) -> list[int]:
        """The slots that the caller is given, of those that are done."""
        if self.slots is not None:
            return self.slots
        return [slot for slot in done if slot in flying][: self.most]
