"""The client's end of a session: handshake, reconnects, heartbeats and statistics."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Literal

from shoal import _native
from shoal._types import Results
from shoal.errors import (
    ConnectionLostError,
    LeaseError,
    ProtocolError,
    RefusedError,
    SessionLostError,
    SpaceMismatchError,
)
from shoal.remote._channel import Channel
from shoal.remote._exit_hooks import close_at_exit
from shoal.remote._handshake import client_handshake
from shoal.remote._heartbeat import HeartbeatThread
from shoal.remote._messages import SessionEnded, SessionInfo, unpack_message
from shoal.remote._stats import Stats
from shoal.remote._target import Target
from shoal.remote._transports.base import STALL_TIMEOUT, Transport, remaining
from shoal.remote._transports.opening import open_transport
from shoal.remote._transports.shared_memory import supports_shared_memory
from shoal.remote._wire import Header, Kind

__all__ = ["Link"]

_CONNECT_TIMEOUT = 30.0
"""Seconds to connect or reconnect if the target has no timeout."""

_MAX_META = 1 << 28
"""Largest meta part in bytes that is read, even if the server announces a higher limit."""

_CLOSE_TIMEOUT = 1.0
"""Seconds to reconnect if the vector is being closed."""

_BACKOFF = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between attempts to reconnect."""

_MAX_HEARTBEAT_INTERVAL = 15.0
"""Seconds between heartbeats that only check whether the connection is alive."""

_MIN_ATTEMPT = 0.5
"""Seconds that an attempt to reconnect takes at least before it is given up."""


class Link:
    """A session with a server.

    Args:
        target: The server, with the options of the connection.

    Raises:
        RefusedError: The server refuses the session.
        ConnectionLostError: The server cannot be reached.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._reconnects = 0
        self._lost_at: float | None = None  # when the connection was lost
        self._attempts = 0  # to reconnect since then
        self._next_attempt = 0.0
        self._times: deque[tuple[float, float]] = deque(maxlen=1000)
        self._requests = 0
        self._end: ConnectionError | None = None  # the final error of the session
        self._is_closing = False
        self._sending = threading.Lock()
        self.receiving = threading.Lock()
        """Held while receiving or reconnecting: by a waiting caller or the heartbeat thread."""
        self._heartbeat_thread: HeartbeatThread | None = None
        self.info, transport = self._connect(time.monotonic() + self._reconnect_timeout)
        self._channel = Channel(transport, retransmits=target.on_lost != "raise")
        interval = self._heartbeat_interval()
        if interval is not None:
            self._heartbeat_thread = HeartbeatThread(self, interval)
            close_at_exit(self)

    def _heartbeat_interval(self) -> float | None:
        """Seconds between heartbeats; None if the session needs none."""
        if self.info.lease is not None:
            return self.info.lease / 4
        if not self._channel.retransmits or self.info.session_ttl <= 0:
            return None
        return min(_MAX_HEARTBEAT_INTERVAL, self.info.session_ttl / 4)

    @property
    def is_over(self) -> bool:
        """Whether the session has ended for good."""
        return self._end is not None

    def check(self) -> None:
        """Raise the error that has ended the session, if any."""
        if self._end is not None:
            raise type(self._end)(*self._end.args)

    @property
    def _reconnect_timeout(self) -> float:
        return _CONNECT_TIMEOUT if self.target.timeout is None else self.target.timeout

    def _connect(self, deadline: float, session: bytes = b"") -> tuple[SessionInfo, Transport]:
        target = self.target
        transport = open_transport(target.address, remaining(deadline), target.tls)
        try:
            info = client_handshake(
                transport,
                deadline=deadline,
                token=target.token,
                name=target.address.name,
                num_envs=target.num_envs,
                session=session,
                received=self._channel.received if session else 0,
                resumable=target.on_lost != "raise",
                priority=target.priority,
                client=f"{socket.gethostname()}/{os.getpid()}",
                values=target.values,
                shares=target.shares_memory and supports_shared_memory(transport),
                stall_timeout=(
                    None if target.timeout is None else min(target.timeout, STALL_TIMEOUT)
                ),
            )
        except BaseException:
            transport.close()
            raise
        return info, transport

    # Requests

    def send(self, kind: Kind, meta: bytes = b"", body: Sequence[Any] = (), **header: Any) -> int:
        """Send a request, and return its number."""
        self._requests += 1
        with self._sending:
            return self._channel.send(kind, meta, body, **header)

    def limit_body(self, size: int) -> None:
        """Reject messages whose body has more than ``size`` bytes."""
        self._channel.max_message = size + self._max_meta

    @property
    def _max_meta(self) -> int:
        return min(self.info.max_meta, _MAX_META)

    @property
    def retransmits(self) -> bool:
        """Whether messages are kept for retransmission after a reconnect."""
        return self._channel.retransmits

    @property
    def last_request(self) -> int:
        """The number of the newest request."""
        return self._channel.sent

    def step_fast(
        self, fast_path: _native.FastPathClient, actions: Any
    ) -> Results | Literal[False] | None:
        """Step all slots on the fast path if possible; see native/remote/fast_path.h."""
        transport = self._channel.transport
        if self.info.lease is not None or not isinstance(transport, _native.Port):
            return None
        channel = self._channel
        start = time.perf_counter()
        try:
            results = fast_path.step(
                transport, actions, channel.sent + 1, channel.received, self.target.timeout
            )
        except ConnectionLostError as error:
            channel.mark_broken(error)
            results = False
        except ProtocolError as error:
            self.fail(error)
            raise
        self.catch_up(fast_path)
        if results:
            self._times.append((time.perf_counter() - start, fast_path.micros / 1e6))
        return results

    def catch_up(self, fast_path: _native.FastPathClient) -> None:
        """Apply the state of the fast path; an interrupt may have prevented it before."""
        channel = self._channel
        if fast_path.last_request > channel.sent:
            channel.sent = fast_path.last_request
            self._requests += 1
        if fast_path.last_received > channel.received:
            channel.received = fast_path.last_received
        if fast_path.is_send_incomplete or fast_path.is_receive_incomplete:
            channel.mark_broken(disconnect=fast_path.is_receive_incomplete)

    def disconnect(self, error: ConnectionLostError) -> None:
        """Drop a connection that was lost inside a message; the next receive reconnects."""
        self._channel.mark_broken(error, disconnect=True)

    def drop_incomplete(self) -> None:
        """Drop the connection if a message was received in part, after an interrupt."""
        if self._channel.is_receive_incomplete:
            self._channel.mark_broken(disconnect=True)

    def heartbeat(self) -> None:
        """Send a heartbeat, and reconnect if the connection is lost and no caller waits."""
        if self._sending.acquire(timeout=1.0):
            try:
                self._channel.send_unnumbered(Kind.HEARTBEAT)
            finally:
                self._sending.release()
        if self._is_lost() and self.receiving.acquire(blocking=False):
            try:
                if self._is_lost():  # a caller may have reconnected meanwhile
                    self._reconnect_in_background()
            finally:
                self.receiving.release()

    def _is_lost(self) -> bool:
        return self._channel.retransmits and self._channel.is_broken

    def next_header(self, timeout: float | None) -> Header | None:
        """Wait for the next message; None after the timeout.

        Reconnects if the connection is lost and ``on_lost`` allows it.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                header = self._channel.next_header(remaining(deadline))
                if header is None or header.kind is not Kind.SESSION_ENDED:
                    return header
                raise self._end_session(header)
            except ConnectionLostError as error:
                if not self.reconnect(error, deadline):
                    return None

    def read_meta(self, header: Header) -> bytearray:
        """Receive the part of a message that is not tensors."""
        return self._channel.read_meta(header, self._max_meta)

    def read_into(self, buffers: Sequence[Any]) -> None:
        """Receive the next parts of a message into these buffers."""
        self._channel.read_into(buffers)

    def complete(self, header: Header) -> None:
        """Mark a message as received, and acknowledge it if that is due."""
        self._channel.complete(header)
        if self._channel.should_acknowledge and self._sending.acquire(blocking=False):
            try:
                self._channel.send_unnumbered(Kind.HEARTBEAT)
            finally:
                self._sending.release()

    def record_time(self, seconds: float, header: Header) -> None:
        """Record the round-trip time of a response."""
        self._times.append((seconds, header.micros / 1e6))

    def _end_session(self, header: Header) -> ConnectionError:
        """Read a SESSION_ENDED message; return the error to raise."""
        ended = unpack_message(SessionEnded, self.read_meta(header))
        kind: type[ConnectionError] = LeaseError if ended.reason == "lease" else SessionLostError
        error = kind(f"{self.target.address}: the server has ended the session: {ended.message}")
        self._channel.disconnect()
        self._end = error
        return error

    # Reconnecting

    def reconnect(self, error: ConnectionLostError, until: float | None = None) -> bool:
        """Resume the session over a new connection after a loss, or raise.

        Returns False if the time ``until`` passes first; the next call continues.

        Raises:
            SessionLostError: The server does not have the session any more.
        """
        with self._sending:
            self._channel.disconnect()
            if self._end is not None:
                self.check()
            if self.target.on_lost == "raise":
                self._end = error
                raise error
            if self._lost_at is None:
                self._lost_at = time.monotonic()
                self._attempts = 0
                self._next_attempt = self._lost_at
            try:
                return self._retry(self._lost_at, until, error)
            except ConnectionError as final:
                self._end = final
                raise

    def _reconnect_in_background(self) -> None:
        """Try once to resume the session; a failure does not use up the callers' time."""
        with self._sending:
            self._channel.disconnect()
            try:
                self._attempt(time.monotonic() + _MIN_ATTEMPT)
            except ConnectionError as failure:
                if not is_transient(failure):
                    self._end = self._end or failure  # raised by the next call

    def _retry(self, lost_at: float, until: float | None, error: ConnectionLostError) -> bool:
        while True:
            # Evaluated in each iteration: another thread may start to close the vector.
            timeout = self._reconnect_timeout
            if self._is_closing:
                timeout = min(timeout, _CLOSE_TIMEOUT)
            latest = lost_at + timeout
            lost = ConnectionLostError(
                f"{self.target.address}: {error}; reconnecting failed for {timeout:g} seconds"
            )
            if self._next_attempt > latest:
                raise lost from error
            if until is not None and self._next_attempt > until:
                time.sleep(max(0.0, until - time.monotonic()))
                return False
            time.sleep(max(0.0, self._next_attempt - time.monotonic()))
            try:
                self._attempt(latest if until is None else min(latest, until))
                return True
            except ConnectionError as failure:
                if not is_transient(failure):
                    raise
                if time.monotonic() >= latest:
                    raise lost from failure
            pause = _BACKOFF[min(self._attempts, len(_BACKOFF) - 1)]
            self._attempts += 1
            self._next_attempt = time.monotonic() + pause
            if until is not None and time.monotonic() >= until:
                return False

    def _attempt(self, deadline: float) -> None:
        deadline = max(deadline, time.monotonic() + _MIN_ATTEMPT)
        info, transport = self._connect(deadline, self.info.session)
        self._channel.resume(transport, info.received)
        self._lost_at = None
        self._reconnects += 1

    def new_session(self) -> Link:
        """Open a new session with the same server in place of this one, which is lost.

        Raises:
            SpaceMismatchError: The environments of the new session differ.
        """
        self.close()
        deadline = time.monotonic() + self._reconnect_timeout
        for attempt in itertools.count():
            try:
                link = Link(self.target)
                break
            except ConnectionError as failure:
                pause = _BACKOFF[min(attempt, len(_BACKOFF) - 1)]
                # The lease may still belong to the lost session.
                can_retry = isinstance(failure, LeaseError) or is_transient(failure)
                if not can_retry or time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)
        before, after = self.info, link.info
        if (before.values, before.num_envs, before.autoreset_mode) != (
            after.values,
            after.num_envs,
            after.autoreset_mode,
        ):
            link.close()
            raise SpaceMismatchError(
                f"{self.target.address}: the server was restarted with other environments"
            )
        link._reconnects = self._reconnects
        return link

    def start_closing(self) -> None:
        """Shorten the time for reconnects: the vector is being closed."""
        self._is_closing = True

    def stats(self) -> Stats:
        """Return the statistics of the connection."""
        transport = self._channel.transport
        trips = sorted(trip for trip, _ in self._times) or [0.0]
        server_times = sorted(server for _, server in self._times) or [0.0]
        return Stats(
            "none" if transport is None else _transport_name(transport),
            self._requests,
            trips[len(trips) // 2],
            trips[int(len(trips) * 0.95)],
            server_times[len(server_times) // 2],
            *self._channel.byte_counts,
            self._reconnects,
        )

    def release_in_child(self) -> None:
        """Release the socket in a forked child without closing the connection of the parent."""
        self._end = ConnectionLostError(
            f"{self.target.address}: the connection belongs to the parent process"
        )
        self._channel.release_in_child()

    def fail(self, error: ProtocolError) -> None:
        """Close the connection to a server that violates the protocol."""
        self._end = self._end or error
        self.close()

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._end = self._end or ConnectionLostError(
            f"{self.target.address}: the connection is closed"
        )
        if self._heartbeat_thread is not None:
            self._heartbeat_thread.stop()
            self._heartbeat_thread = None
        self._channel.disconnect()


def is_transient(failure: ConnectionError) -> bool:
    """Whether a later attempt to connect may succeed."""
    if isinstance(failure, RefusedError):
        return failure.reason in ("full", "server")
    return not isinstance(failure, SessionLostError | ProtocolError)


def _transport_name(transport: Transport) -> str:
    is_shared = getattr(transport, "is_shared", False)
    return f"{transport.name}, shared memory" if is_shared else transport.name
