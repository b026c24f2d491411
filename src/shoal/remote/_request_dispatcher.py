"""The client's requests: sending, waiting for responses, and recovery from lost connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from gymnasium.error import AlreadyPendingCallError

from shoal import _native
from shoal._spaces import Layout
from shoal._types import Results
from shoal.errors import (
    ConnectionLostError,
    ProtocolError,
    ReceiveTimeoutError,
    SessionLostError,
)
from shoal.pools._restarts import RestartTracker
from shoal.remote._deadline import Deadline
from shoal.remote._link import Link
from shoal.remote._messages import ResetRequest, pack_message
from shoal.remote._pending_requests import PendingRequests
from shoal.remote._response_handler import ResponseHandler
from shoal.remote._value_codec import pack_values
from shoal.remote._wire import Kind

__all__ = ["RequestDispatcher"]

_NO_FIELDS: Mapping[str, Any] = {}


class RequestDispatcher:
    """Sends requests and waits for their responses.

    An interrupt may arrive between any two lines, so a request is added to the pending ones before
    it is sent.

    Args:
        link: The session; replaced by a new one after a lost session.
        handler: The handler of messages from the server.
        layout: The layout of one slot's observation.
        num_envs: Number of slots.
        fast_path: The fast path, if the spaces support it.
        restarts: Whether to open a new session after a lost one.
    """

    def __init__(
        self,
        link: Link,
        handler: ResponseHandler,
        layout: Layout,
        num_envs: int,
        fast_path: _native.FastPathClient | None,
        *,
        restarts: bool,
    ) -> None:
        self.link = link
        self._handler = handler
        self._layout = layout
        self._num_envs = num_envs
        self._fast_path = fast_path
        self._restarts = restarts
        self._start_session()

    def _start_session(self) -> None:
        self.link.limit_body(self._handler.max_body)
        self._handler.reset()
        self.pending = PendingRequests(self._layout, self._num_envs)
        self._last_fast_request = 0  # the newest one on the fast path that was processed

    def close_session(self, deadline: Deadline) -> None:
        """Have the server close its environments."""
        self.link.start_closing()
        self._restarts = False
        self.call(Kind.CLOSE, b"", deadline)

    def disconnect(self) -> None:
        """Close the connection; a second call does nothing."""
        self._fast_path = None
        self.link.close()

    def release_in_child(self) -> None:
        """Release the socket in a forked child without closing the connection of the parent."""
        self._fast_path = None
        self.link.release_in_child()

    # Slots in flight

    @property
    def in_flight(self) -> int:
        """Number of slots that are in flight."""
        self._catch_up()
        return self.pending.in_flight

    @property
    def has_round_in_flight(self) -> bool:
        """Whether a step of all slots is in flight as a whole."""
        self._catch_up()
        return self.pending.ledger.is_in_round

    def check_idle(self, slots: npt.NDArray[np.int64] | None) -> None:
        """Check that these slots, or all, are not in flight.

        Raises:
            AlreadyPendingCallError: A slot is in flight.
        """
        self._check_session()
        self._catch_up()
        self.pending.ledger.check_idle(slots)

    def _check_session(self) -> None:
        """Raise the error that has ended the session, unless a new one replaces it."""
        self._finish_restart()
        try:
            self.link.check()
        except SessionLostError:
            if not self._restarts:
                raise
            self._restart_session()

    # Sending

    def step_fast(self, actions: Any) -> Results | Literal[False] | None:
        """Step all slots on the fast path; see native/remote/fast_path.h for the result."""
        if self._fast_path is None:
            return None
        results = self.link.step_fast(self._fast_path, actions)
        if results:
            self._last_fast_request = self._fast_path.last_request
        return results

    def _catch_up(self) -> None:
        """Take over a step of the fast path whose results were not delivered."""
        fast_path = self._fast_path
        if fast_path is None or fast_path.last_request == self._last_fast_request:
            return
        self.link.catch_up(fast_path)
        number = fast_path.last_request
        self.pending.add(number, is_round=True)
        if fast_path.last_answered == number:
            self.pending.round_results = fast_path.results
            self.pending.settle(number)
        self._last_fast_request = number

    def request(
        self,
        kind: Kind,
        meta: bytes = b"",
        body: Sequence[Any] = (),
        slots: npt.NDArray[np.int64] | None = None,
        is_round: bool = False,
        **header: Any,
    ) -> int:
        """Send a request for some slots, or for a step of all, and return its number."""
        self._finish_restart()
        return self._send(kind, meta, body, slots, is_round, header)

    def _send(
        self,
        kind: Kind,
        meta: bytes,
        body: Sequence[Any] = (),
        slots: npt.NDArray[np.int64] | None = None,
        is_round: bool = False,
        header: Mapping[str, Any] = _NO_FIELDS,
    ) -> int:
        number = self.link.last_request + 1
        info = self.link.info
        if len(meta) > info.max_meta:
            raise ValueError(
                f"the request has {len(meta)} bytes of arguments or options, but the server "
                f"accepts at most {info.max_meta}"
            )
        if kind in (Kind.STEP, Kind.RESET) and len(self.pending) >= info.max_inflight:
            raise AlreadyPendingCallError(
                f"{len(self.pending)} requests are in flight, but the server accepts at most "
                f"{info.max_inflight}",
                "recv",
            )
        try:
            self.pending.add(number, slots, is_round=is_round, is_latest=kind is Kind.LATEST)
            self.link.send(kind, meta, body, **header)
        finally:
            if self.link.last_request < number:
                self.pending.withdraw(number)
        return number

    def call(self, kind: Kind, meta: bytes, deadline: Deadline) -> Any:
        """Send a request, wait for the reply, and return it."""
        self._check_session()
        number = self.request(kind, meta)
        try:
            self.wait(lambda: number in self.pending.replies, deadline)
        except ReceiveTimeoutError:
            self.pending.settle(number)  # a late reply is ignored
            raise
        reply = self.pending.replies.pop(number)
        if isinstance(reply, BaseException):
            raise reply
        return reply

    def report_losses(self, slots: Iterable[int]) -> None:
        """Answer a step of slots that have lost their environments with that loss."""
        lost = list(slots)
        pending = self.pending
        pending.arrivals.expect(lost, pending.restarts.number)
        pending.arrivals.put(pending.restarts.take_losses(lost), pending.restarts.number)

    # Waiting

    def wait_for_round(self, deadline: Deadline) -> Results:
        """Wait for a step of all slots; if a slot fails, the results of the others are dropped."""
        self.wait(lambda: self.pending.has_round(), deadline)
        return self.pending.take_round()

    def wait(self, is_done: Callable[[], bool], deadline: Deadline) -> None:
        """Process messages until ``is_done``.

        Raises:
            ReceiveTimeoutError: The deadline passes first.
        """
        if is_done():
            return
        self._finish_restart()
        while True:
            try:
                with self.link.receiving:
                    timeout = deadline.remaining(self.pending.expected_duration)
                    header = self.link.next_header(timeout)
                    if header is None:
                        raise ReceiveTimeoutError(
                            f"{self.link.target.address} did not respond within "
                            f"{deadline.timeout} seconds; what is in flight can still be received"
                        )
                    self._handler.handle(header, self.link, self.pending)
            except ConnectionLostError as error:
                self._recover(error)
            except ReceiveTimeoutError:
                raise
            except ProtocolError as error:
                self.link.fail(error)
                raise
            except BaseException:
                self.link.drop_incomplete()
                raise
            if is_done():
                return

    # Recovery

    def _recover(self, error: ConnectionLostError) -> None:
        """Continue after a loss with the session, or with a new one if that is allowed."""
        if not self.link.is_over:
            self.link.disconnect(error)
        elif isinstance(error, SessionLostError) and self._restarts:
            self._restart_session()
        else:
            raise error

    def _restart_session(self) -> None:
        """Open a new session; each of its slots reports the loss once."""
        in_round = self.has_round_in_flight
        lost = self.pending
        in_flight = lost.ledger.slots_in_flight().tolist()
        slot_requests = {lost.ledger.request_of(slot) for slot in in_flight}
        if in_round:
            in_flight = list(range(self._num_envs))
            slot_requests = {lost.ledger.round_request}
        calls = [number for number in lost.sent_at if number not in slot_requests]
        self.link = self.link.new_session()
        self._start_session()
        address = self.link.target.address
        error = SessionLostError(f"{address}: the session was lost during a call")
        pending = self.pending
        pending.replies = dict.fromkeys(calls, error)
        pending.restarts = RestartTracker(self.link.last_request + 1, range(self._num_envs))
        pending.arrivals.expect(in_flight, pending.restarts.number)
        pending.arrivals.put(lost.arrivals.done(), pending.restarts.number)
        self._reset_slots()

    def _finish_restart(self) -> None:
        """Reset the slots of a new session if an interrupt has prevented it."""
        if self.pending.restarts.is_of(self.link.last_request + 1):
            self._reset_slots()

    def _reset_slots(self) -> None:
        values = pack_values([[None] * self._num_envs, None])
        request = ResetRequest(tuple(range(self._num_envs)), values)
        self._send(Kind.RESET, pack_message(request))
