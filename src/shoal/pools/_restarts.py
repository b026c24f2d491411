"""What slots report after their environments were lost and replaced."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal._types import CRASHED, Event
from shoal.pools._base import Batch

__all__ = ["RestartTracker", "loss_events"]


class RestartTracker:
    """The slots of a replacement, from their reset until each has reported its loss.

    The slots are reset first. Each then reports its loss once: at once if the caller waits for it,
    otherwise the next time that it is sent.

    Args:
        number: The number of the request that resets the slots; 0 if nothing was lost.
        slots: The slots whose environments were lost.
    """

    def __init__(self, number: int = 0, slots: Iterable[int] = ()) -> None:
        self.number = number
        self._resetting = set(slots)
        self._unreported: dict[int, tuple[Batch, int]] = {}  # the batch and row of each slot

    @property
    def is_under_way(self) -> bool:
        """Whether some slots have not been reset yet."""
        return bool(self._resetting)

    def is_of(self, number: int) -> bool:
        """Whether this is the number of the request that resets the slots."""
        return self.number != 0 and number == self.number

    def concerned(self, slots: Iterable[int]) -> list[int]:
        """Return those of these slots that have not reported their loss."""
        if not (self._unreported or self._resetting):
            return []
        return [slot for slot in slots if slot in self._unreported or slot in self._resetting]

    def begun(
        self,
        reset: Batch,
        awaited: Collection[int],
        observations: Mapping[int, Any],
        autoreset_mode: AutoresetMode,
    ) -> Batch:
        """Note that slots were reset, and return the batch that reports their losses.

        Args:
            reset: The results of the reset.
            awaited: Slots that the caller waits for. The others report when they are sent.
            observations: The newest observation of each slot before the loss.
            autoreset_mode: The autoreset mode of the pool.
        """
        batch = _loss_batch(reset, observations, autoreset_mode)
        for row, slot in enumerate(batch.slots.tolist()):
            if slot in self._resetting and slot not in awaited:
                self._unreported[slot] = batch, row
            self._resetting.discard(slot)
        return batch

    def discard(self, slots: Iterable[int]) -> None:
        """Note that slots could not be reset: they report an error instead of their loss."""
        self._resetting.difference_update(slots)

    def unreported(self, slots: Iterable[int]) -> dict[int, tuple[Batch, int]]:
        """Return the unreported losses of these slots that are known, as rows of batches."""
        return {slot: self._unreported[slot] for slot in slots if slot in self._unreported}

    def mark_reported(self, slots: Iterable[int]) -> None:
        """Note that these slots have reported their losses, or need not report them."""
        for slot in slots:
            self._unreported.pop(slot, None)

    def take_losses(self, slots: Iterable[int]) -> dict[int, tuple[Batch, int]]:
        """Return what :meth:`unreported` returns, and mark it reported."""
        losses = self.unreported(slots)
        self.mark_reported(losses)
        return losses


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


def _loss_batch(
    reset: Batch, observations: Mapping[int, Any], autoreset_mode: AutoresetMode
) -> Batch:
    """Return the results of a reset as the truncated last steps of the episodes that were lost."""
    events: list[Event] = []
    all_reset_events = reset.raw_infos[0] if reset.raw_infos is not None else []
    for row, slot in enumerate(reset.slots.tolist()):
        reset_events = [event for event in all_reset_events if event[0] == row]
        events += loss_events(row, reset_events, autoreset_mode, observations.get(slot))
    truncated = np.ones(len(reset.slots), np.bool_)
    return reset._replace(truncated=truncated, infos=(events, None))
