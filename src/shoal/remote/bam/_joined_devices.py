"""Several clients as one pool: each has its own connection, and a thread that asks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._spaces.leaves import batch_leaves
from shoal._types import Results
from shoal.pools._base import SlotChoice, slot_numbers
from shoal.pools._joined import JoinedPool
from shoal.remote._device import Device
from shoal.remote._device_pool import DevicePool, receive_step

__all__ = ["JoinedDevices"]


class JoinedDevices(JoinedPool):
    """The contract over several devices, whose slots follow each other.

    Args:
        devices: What is called. The pool owns them, and closes them.
        counts: How many slots each of them has.
    """

    def __init__(self, devices: Sequence[Device], counts: Sequence[int]) -> None:
        total = sum(counts)
        starts = accumulate(counts, initial=0)
        self._device_pools = [
            DevicePool(device, count, first=first, total=total)
            for device, count, first in zip(devices, counts, starts, strict=False)
        ]
        super().__init__(self._device_pools)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and send them to their devices."""
        # All slots are checked before the first device hears of it.
        for part, own in self._owned(self._idle(slots)):
            part.check_sendable(own)
        super().send(actions, slots)

    def begin_step(self, actions: Any) -> None:
        """Send an action for every slot; as slots, so that some can be taken back."""
        self.send(actions)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for what ``begin_step`` has begun; a failure costs the rows of all slots."""
        return receive_step(self, timeout)

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Take back what has not begun, as :meth:`.DevicePool.cancel` does."""
        taken_back: list[int] = []
        for part, own in self._owned(slot_numbers(slots, self.num_envs)):
            taken_back += [part.first + slot for slot in part.cancel(own)]
        for slot in taken_back:
            del self._arrivals.flying[slot]
        return taken_back

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close all devices, also after one has failed to."""
        for part in self._device_pools:
            part.stop()  # while one is waited for, the others begin nothing more
        super().close(terminate=terminate, timeout=timeout)

    def expected_duration(self, slots: npt.NDArray[np.int64], actions: Any) -> float:
        """Seconds that a step of these slots will probably take: those of the slowest device."""
        leaves = batch_leaves(self._actions.layout, actions)
        return max(
            pool.expected_duration(own, self._actions.part(leaves, places))
            for pool, places, own in self._shares(slots)
            if isinstance(pool, DevicePool)
        )

    def _owned(
        self, slots: npt.NDArray[np.int64]
    ) -> Iterator[tuple[DevicePool, npt.NDArray[np.int64]]]:
        """Each part with those of these slots that it has, by their numbers there."""
        for part in self._device_pools:
            own = slots - part.first
            yield part, own[(own >= 0) & (own < part.num_envs)]

    def _tell_place(self, error: Exception, place: int) -> None:
        """Nothing: a part that knows its place has told it."""
