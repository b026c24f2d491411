"""The pool of several clients, each with its own connection and thread."""

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
    """A pool whose slots are those of several devices in order.

    Args:
        devices: The devices. The pool owns and closes them.
        counts: Number of slots of each device.
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
        # All slots are checked before the first device is called.
        for part, own in self._owned(self._idle(slots)):
            part.check_sendable(own)
        super().send(actions, slots)

    def begin_step(self, actions: Any) -> None:
        """Send an action for every slot; slots can be cancelled separately."""
        self.send(actions)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` started; a failure drops the results of others."""
        return receive_step(self, self._ledger, timeout)

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Cancel steps and resets that have not started; see :meth:`.DevicePool.cancel`."""
        cancelled: list[int] = []
        for part, own in self._owned(slot_numbers(slots, self.num_envs)):
            cancelled += [part.first + slot for slot in part.cancel(own)]
        self._ledger.clear(np.array(cancelled, np.int64))
        return cancelled

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close all devices, even if one fails to close."""
        for part in self._device_pools:
            part.stop()  # so that no device starts a new call while another is closed
        super().close(terminate=terminate, timeout=timeout)

    def expected_duration(self, slots: npt.NDArray[np.int64], actions: Any) -> float:
        """Return the expected seconds of a step of these slots: those of the slowest device."""
        leaves = batch_leaves(self._actions.layout, actions)
        return max(
            pool.expected_duration(own, self._actions.part(leaves, places))
            for pool, places, own in self._shares(slots)
            if isinstance(pool, DevicePool)
        )

    def _owned(
        self, slots: npt.NDArray[np.int64]
    ) -> Iterator[tuple[DevicePool, npt.NDArray[np.int64]]]:
        """Yield each device's pool with its share of these slots, by their numbers there."""
        for part in self._device_pools:
            own = slots - part.first
            yield part, own[(own >= 0) & (own < part.num_envs)]

    def _tell_place(self, error: Exception, place: int) -> None:
        """Do nothing: the pool of the device has added the slot numbers already."""
