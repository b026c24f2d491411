"""What slots report after their environments were lost and replaced."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal._types import CRASHED, Event
from shoal.pools._base import Batch

__all__ = ["RestartTracker", "loss_events", "lost_batch"]


class RestartTracker:
    """The slots of a session that took the place of a lost one.

    They are reset first; then each tells of its loss once, with its next answer.

    Args:
        number: Of the request that resets them; 0 where nothing was lost.
        slots: Those that have a loss to tell of.
    """

    def __init__(self, number: int = 0, slots: Iterable[int] = ()) -> None:
        self.number = number
        self._coming = set(slots)
        self._lost: dict[int, tuple[Batch, int]] = {}  # those that have come, and told nobody yet

    @property
    def is_under_way(self) -> bool:
        """Whether slots have not come back yet."""
        return bool(self._coming)

    def is_of(self, number: int) -> bool:
        """Whether this is the request that resets them."""
        return self.number != 0 and number == self.number

    def concerned(self, slots: Iterable[int]) -> list[int]:
        """Those of these slots that have a loss to tell of."""
        if not (self._lost or self._coming):
            return []
        return [slot for slot in slots if slot in self._lost or slot in self._coming]

    def begun(
        self,
        reset: Batch,
        waited_for: Collection[int],
        shown: Mapping[int, Any],
        autoreset_mode: AutoresetMode,
    ) -> Batch:
        """Slots have come back: what those tell that are waited for; the others do when sent."""
        batch = lost_batch(reset, shown, autoreset_mode)
        for row, slot in enumerate(batch.slots.tolist()):
            if slot in self._coming and slot not in waited_for:
                self._lost[slot] = batch, row
            self._coming.discard(slot)
        return batch

    def failed(self, slots: Iterable[int]) -> None:
        """Slots could not be reset: they have an error to tell of instead."""
        self._coming.difference_update(slots)

    def to_tell(self, slots: Iterable[int]) -> dict[int, tuple[Batch, int]]:
        """What those of these slots have to tell that have come back."""
        return {slot: self._lost[slot] for slot in slots if slot in self._lost}

    def forget(self, slots: Iterable[int]) -> None:
        """These slots have told of their loss, or need not do so any more."""
        for slot in slots:
            self._lost.pop(slot, None)

    def told(self, slots: Iterable[int]) -> dict[int, tuple[Batch, int]]:
        """What those of these slots tell that have come back; they have told it then."""
        told = self.to_tell(slots)
        self.forget(told)
        return told


def loss_events(
    row: int, reset_events: Iterable[Event], autoreset_mode: AutoresetMode, final_obs: Any
) -> list[Event]:
    """Return the events of a slot whose environment was lost and whose new one was just reset.

    Args:
        row: The row of the slot.
        reset_events: The events of the reset.
        autoreset_mode: In the same-step mode, infos report the final observation.
        final_obs: The newest observation before the loss, if there is one.
    """
    events: list[Event] = []
    if autoreset_mode is AutoresetMode.SAME_STEP:
        events.append((row, {"final_obs": final_obs, "final_info": {CRASHED: True}}))
    return [*events, *reset_events, (row, {CRASHED: True})]


def lost_batch(begun: Batch, shown: Mapping[int, Any], autoreset_mode: AutoresetMode) -> Batch:
    """A batch of slots that were just reset, as the end of the episodes that were lost.

    Args:
        begun: What the reset has given.
        shown: The newest observation that each slot has shown before.
        autoreset_mode: In the same-step mode, infos tell the last observations.
    """
    events: list[Event] = []
    told = begun.raw_infos[0] if begun.raw_infos is not None else []
    for row, slot in enumerate(begun.slots.tolist()):
        of_reset = [event for event in told if event[0] == row]
        events += loss_events(row, of_reset, autoreset_mode, shown.get(slot))
    truncated = np.ones(len(begun.slots), np.bool_)
    return begun._replace(truncated=truncated, infos=(events, None))
