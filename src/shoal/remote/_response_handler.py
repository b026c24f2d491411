"""The client's handler of messages from the server."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from shoal._spaces import Layout
from shoal._types import ColumnInfos
from shoal.errors import ProtocolError
from shoal.pools._base import Batch
from shoal.remote._batch_reader import BatchReader
from shoal.remote._device import STATUS, Status
from shoal.remote._error_codec import decode_error
from shoal.remote._link import Link
from shoal.remote._messages import ExpectedDuration, Failure, unpack_message
from shoal.remote._pending_requests import PendingRequests
from shoal.remote._value_codec import unpack_values
from shoal.remote._wire import SOME_SLOTS, Header, Kind

__all__ = ["ResponseHandler"]

_UNCHANGED = (Status.NOT_EXECUTED, Status.TIMEOUT)
"""The status of slots whose response says nothing about the end of the episode."""


class ResponseHandler:
    """Reads messages and applies them to the pending requests.

    An interrupt may arrive between any two lines, so the content of a message is stored before the
    message counts as received.

    Args:
        space: The observation space of one slot.
        layout: The layout of that space.
        num_envs: Number of slots.
        autoreset_mode: The autoreset mode of the server's slots.
        finished: Whether each slot has finished its episode; updated here, read by the checks of
            actions.
        keeps_final: Whether to keep each slot's newest observation, for the info ``final_obs`` of
            slots that lose their environment.
    """

    def __init__(
        self,
        space: spaces.Space[Any],
        layout: Layout,
        num_envs: int,
        autoreset_mode: AutoresetMode,
        finished: npt.NDArray[np.bool_],
        *,
        keeps_final: bool,
    ) -> None:
        self._space = space
        self._autoreset_mode = autoreset_mode
        self._finished = finished
        self._keeps_final = keeps_final and autoreset_mode is AutoresetMode.SAME_STEP
        self._reader = BatchReader(layout, num_envs)
        self._last_observations: dict[int, Any] = {}

    @property
    def max_body(self) -> int:
        """Largest body of a message in bytes."""
        return self._reader.max_body

    def reset(self) -> None:
        """Mark the episodes of all slots as running, for a new session."""
        self._finished[:] = False

    def handle(self, header: Header, link: Link, pending: PendingRequests) -> None:
        """Read the message after this header and apply it.

        Raises:
            ProtocolError: The message is not a valid response.
        """
        handle = _HANDLERS.get(header.kind)
        if handle is None or not header.number:
            raise ProtocolError(f"{header.kind.name} with number {header.number} is not a response")
        handle(self, header, link, pending)
        link.complete(header)

    def _batch(self, header: Header, link: Link, pending: PendingRequests) -> None:
        batch = self._reader.read(link, header)
        number = header.reply_to
        _record_time(header, link, pending)
        if number in pending.latest_requests:
            pending.latest_requests.discard(number)
            if number in pending.sent_at:
                pending.replies[number] = batch.observations
                pending.settle(number)
            return
        if pending.is_round(number) and not header.flags & SOME_SLOTS:
            pending.settle(number)
            pending.round_results = batch[1:]
        else:
            self._some_slots(number, batch, pending)
        if self._autoreset_mode is not AutoresetMode.SAME_STEP:
            self._update_finished(batch)
        elif self._keeps_final:
            space = batch_space(self._space, len(batch.slots))
            rows = deepcopy(list(iterate(space, batch.observations)))
            self._last_observations.update(zip(batch.slots.tolist(), rows, strict=True))

    def _update_finished(self, batch: Batch) -> None:
        slots, infos = batch.slots, batch.infos
        finished = np.logical_or(batch.terminated, batch.truncated)
        if infos is not None and not isinstance(infos, ColumnInfos):
            for row, info in infos[0]:
                if info.get(STATUS) in _UNCHANGED:
                    finished[row] = self._finished[slots[row]]
        self._finished[slots] = finished

    def _some_slots(self, number: int, batch: Batch, pending: PendingRequests) -> None:
        if pending.is_round(number):
            pending.ledger.split_round()
        if pending.restarts.is_of(number):
            outstanding = pending.arrivals.missing()
            batch = pending.restarts.begun(
                batch, outstanding, self._last_observations, self._autoreset_mode
            )
        pending.arrivals.add(number, batch)
        pending.settle_if_complete(number)

    def _reply(self, header: Header, link: Link, pending: PendingRequests) -> None:
        reply = unpack_values(link.read_meta(header))
        if header.reply_to in pending.sent_at:
            _record_time(header, link, pending)
            pending.replies[header.reply_to] = reply
            pending.settle(header.reply_to)

    def _failure(self, header: Header, link: Link, pending: PendingRequests) -> None:
        failure = unpack_message(Failure, link.read_meta(header))
        _record_time(header, link, pending)
        error = decode_error(failure)
        number = header.reply_to
        if pending.is_round(number):
            pending.ledger.split_round()
        if pending.arrivals.fail(number, failure.slots, error):
            pending.settle_if_complete(number)
        elif number in pending.sent_at:
            pending.replies[number] = error
            pending.settle(number)

    def _expected_duration(self, header: Header, link: Link, pending: PendingRequests) -> None:
        expected = unpack_message(ExpectedDuration, link.read_meta(header))
        if not math.isfinite(expected.seconds):
            raise ProtocolError(
                f"the expected duration of a request is {expected.seconds} seconds, which is not "
                "finite"
            )
        if header.reply_to in pending.sent_at:
            pending.expected_durations[header.reply_to] = expected.seconds


def _record_time(header: Header, link: Link, pending: PendingRequests) -> None:
    """Record the round-trip time of a response; a request may have several."""
    sent_at = pending.sent_at.get(header.reply_to)
    if sent_at is not None:
        link.record_time(time.perf_counter() - sent_at, header)


_HANDLERS: dict[Kind, Callable[[ResponseHandler, Header, Link, PendingRequests], None]] = {
    Kind.BATCH: ResponseHandler._batch,
    Kind.REPLY: ResponseHandler._reply,
    Kind.FAILURE: ResponseHandler._failure,
    Kind.EXPECTED_DURATION: ResponseHandler._expected_duration,
}
