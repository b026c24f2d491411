"""The client's end of a session: it connects, counts, waits, and comes back after a loss."""

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
from shoal.remote._handshake import introduced
from shoal.remote._heartbeat import Heart
from shoal.remote._messages import Ended, Welcome, unpack_message
from shoal.remote._stats import Stats
from shoal.remote._target import Target
from shoal.remote._transports.base import STALL_TIMEOUT, Transport, remaining
from shoal.remote._transports.opening import open_transport
from shoal.remote._transports.shared_memory import is_shareable
from shoal.remote._wire import Header, Kind

__all__ = ["Link"]

_COMING_BACK = 30.0
"""Seconds to try to connect, or to come back, where no timeout says it."""

_MOST_META = 1 << 28
"""Bytes of meta that are read, whatever the server says."""

_LEAVING = 1.0
"""Seconds to try to come back only to say goodbye."""

_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between attempts to come back."""

_LONGEST_BEAT = 15.0
"""Seconds between beats of a heart that only looks whether the connection is there."""

_ATTEMPT = 0.5
"""Seconds that an attempt to come back has at least, however short the caller's time is."""


class Link:
    """A session with a server.

    Args:
        target: What to connect to.

    Raises:
        RefusedError: The server does not let us in.
        ConnectionLostError: There is no server.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._reconnects = 0
        self._lost_at: float | None = None  # since when there has been no connection
        self._attempts = 0  # to come back since then
        self._next_attempt = 0.0
        self._times: deque[tuple[float, float]] = deque(maxlen=1000)
        self._requests = 0
        self._end: ConnectionError | None = None  # of the session, which will not be resumed
        self._is_leaving = False
        self._sending = threading.Lock()
        self.receiving = threading.Lock()
        """Held by whoever receives: a caller who waits, or else the one who renews a lease."""
        self._heart: Heart | None = None
        self.welcome, transport = self._connected(time.monotonic() + self._patience)
        self._channel = Channel(transport, keeps=target.on_lost != "raise")
        pause = self._between_beats()
        if pause is not None:
            self._heart = Heart(self, pause)
            close_at_exit(self)

    def _between_beats(self) -> float | None:
        """Seconds after which the server must hear of us, or we of a lost connection."""
        if self.welcome.lease is not None:
            return self.welcome.lease / 4
        if not self._channel.keeps or self.welcome.session_ttl <= 0:
            return None
        return min(_LONGEST_BEAT, self.welcome.session_ttl / 4)

    @property
    def is_over(self) -> bool:
        """Whether the session has ended, and will not be resumed."""
        return self._end is not None

    def check(self) -> None:
        """Raise what has ended the session, if something has."""
        if self._end is not None:
            raise type(self._end)(*self._end.args)

    @property
    def _patience(self) -> float:
        return _COMING_BACK if self.target.timeout is None else self.target.timeout

    def _connected(self, deadline: float, session: bytes = b"") -> tuple[Welcome, Transport]:
        target = self.target
        transport = open_transport(target.address, remaining(deadline), target.tls)
        try:
            welcome = introduced(
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
                shares=target.shares_memory and is_shareable(transport),
                patience=None if target.timeout is None else min(target.timeout, STALL_TIMEOUT),
            )
        except BaseException:
            transport.close()
            raise
        return welcome, transport

    # Requests

    def send(self, kind: Kind, meta: bytes = b"", body: Sequence[Any] = (), **header: Any) -> int:
        """Send a request, and return its number."""
        self._requests += 1
        with self._sending:
            return self._channel.send(kind, meta, body, **header)

    def expect_at_most(self, size: int) -> None:
        """The server's messages have no more bytes than these, and what is not tensors."""
        self._channel.largest = size + self._max_meta

    @property
    def _max_meta(self) -> int:
        return min(self.welcome.max_meta, _MOST_META)

    @property
    def keeps(self) -> bool:
        """Whether messages are kept until the server has them."""
        return self._channel.keeps

    @property
    def newest(self) -> int:
        """The number of the newest request."""
        return self._channel.sent

    def step_fast(
        self, fast_path: _native.FastPathClient, actions: Any
    ) -> Results | Literal[False] | None:
        """Step all slots in the shortest way, where it goes; see :class:`FastPathClient`."""
        transport = self._channel.transport
        if self.welcome.lease is not None or not isinstance(transport, _native.Port):
            return None
        channel = self._channel
        begun = time.perf_counter()
        try:
            results = fast_path.step(
                transport, actions, channel.sent + 1, channel.received, self.target.timeout
            )
        except ConnectionLostError as error:
            channel.break_off(error)
            results = False
        except ProtocolError as error:
            self.give_up(error)
            raise
        self.catch_up(fast_path)
        if results:
            self._times.append((time.perf_counter() - begun, fast_path.micros / 1e6))
        return results

    def catch_up(self, fast_path: _native.FastPathClient) -> None:
        """Take over where the fast path stands; an interrupt may have kept us from it."""
        channel = self._channel
        if fast_path.last_request > channel.sent:
            channel.sent = fast_path.last_request
            self._requests += 1
        if fast_path.last_received > channel.received:
            channel.received = fast_path.last_received
        if fast_path.is_send_incomplete or fast_path.is_receive_incomplete:
            channel.break_off(and_lose=fast_path.is_receive_incomplete)

    def lose(self, error: ConnectionLostError) -> None:
        """The connection was lost in the middle of a message; who waits for one comes back."""
        self._channel.break_off(error, and_lose=True)

    def tear(self) -> None:
        """Give up a connection that is in the middle of a message that nobody will read."""
        if self._channel.is_inside:
            self._channel.break_off(and_lose=True)

    def heartbeat(self) -> None:
        """Let the server know that we are there."""
        if self._sending.acquire(timeout=1.0):
            try:
                self._channel.tell(Kind.ALIVE)
            finally:
                self._sending.release()
        if self._is_lost() and self.receiving.acquire(blocking=False):
            # Nobody waits for an answer who would notice, and the lease goes on.
            try:
                if self._is_lost():  # somebody may have come back meanwhile
                    self._come_back_unasked()
            finally:
                self.receiving.release()

    def _is_lost(self) -> bool:
        return self._channel.keeps and self._channel.is_broken

    def next_header(self, timeout: float | None) -> Header | None:
        """The beginning of the next message; None when the time is over.

        A lost connection is taken up again here, where that was asked for.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                header = self._channel.next_header(remaining(deadline))
                if header is None or header.kind is not Kind.ENDED:
                    return header
                raise self._ended(header)
            except ConnectionLostError as error:
                if not self.come_back(error, deadline):
                    return None

    def read_meta(self, header: Header) -> bytearray:
        """What is not a tensor of a message."""
        return self._channel.read_meta(header, self._max_meta)

    def read_into(self, buffers: Sequence[Any]) -> None:
        """Read the next parts of a message into these buffers."""
        self._channel.read_into(buffers)

    def complete(self, header: Header) -> None:
        """A message was read to its end."""
        self._channel.complete(header)
        if self._channel.owes_acknowledgement and self._sending.acquire(blocking=False):
            try:
                self._channel.tell(Kind.ALIVE)
            finally:
                self._sending.release()

    def timed(self, seconds: float, header: Header) -> None:
        """Note how long an answer has taken."""
        self._times.append((seconds, header.micros / 1e6))

    def _ended(self, header: Header) -> ConnectionError:
        """What the server's farewell means."""
        ended = unpack_message(Ended, self.read_meta(header))
        kind: type[ConnectionError] = LeaseError if ended.reason == "lease" else SessionLostError
        error = kind(f"{self.target.address}: the server has ended the session: {ended.message}")
        self._channel.lose()
        self._end = error
        return error

    # Losses

    def come_back(self, error: ConnectionLostError, until: float | None = None) -> bool:
        """After a loss: resume the session over a new connection, or raise.

        Returns False if the caller's time is over before that; the next call goes on with it.

        Raises:
            SessionLostError: The server does not know the session any more.
        """
        with self._sending:
            self._channel.lose()
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
                return self._resume(self._lost_at, until, error)
            except ConnectionError as final:
                self._end = final
                raise

    def _come_back_unasked(self) -> None:
        """Try once to resume the session; whoever asks next has all of its patience."""
        with self._sending:
            self._channel.lose()
            try:
                self._attempt(time.monotonic() + _ATTEMPT)
            except ConnectionError as failure:
                if not is_passing(failure):
                    self._end = self._end or failure  # whoever asks next is told

    def _resume(self, lost_at: float, until: float | None, error: ConnectionLostError) -> bool:
        while True:
            # Read each time: whoever closes the vector meanwhile does not want to wait.
            patience = min(self._patience, _LEAVING) if self._is_leaving else self._patience
            latest = lost_at + patience
            lost = ConnectionLostError(
                f"{self.target.address}: {error}; it was not reached again within {patience:g} "
                "seconds"
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
                if not is_passing(failure):
                    raise
                if time.monotonic() >= latest:
                    raise lost from failure
            pause = _PAUSES[min(self._attempts, len(_PAUSES) - 1)]
            self._attempts += 1
            self._next_attempt = time.monotonic() + pause
            if until is not None and time.monotonic() >= until:
                return False

    def _attempt(self, deadline: float) -> None:
        deadline = max(deadline, time.monotonic() + _ATTEMPT)
        welcome, transport = self._connected(deadline, self.welcome.session)
        self._channel.resume(transport, welcome.received)
        self._lost_at = None
        self._reconnects += 1

    def renewed(self) -> Link:
        """A new session with the same server, in the place of this one, which is lost.

        Raises:
            SpaceMismatchError: Its environments are others.
        """
        self.close()
        deadline = time.monotonic() + self._patience
        for attempt in itertools.count():
            try:
                link = Link(self.target)
                break
            except ConnectionError as failure:
                pause = _PAUSES[min(attempt, len(_PAUSES) - 1)]
                # Our own lost session may have what there is one of.
                is_ours = isinstance(failure, LeaseError)
                if not (is_ours or is_passing(failure)) or time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)
        ours, theirs = self.welcome, link.welcome
        if (ours.values, ours.num_envs, ours.autoreset_mode) != (
            theirs.values,
            theirs.num_envs,
            theirs.autoreset_mode,
        ):
            link.close()
            raise SpaceMismatchError(
                f"{self.target.address}: the server has come back with other environments"
            )
        link._reconnects = self._reconnects
        return link

    def leave(self) -> None:
        """From now on, a lost connection is not worth much waiting."""
        self._is_leaving = True

    def stats(self) -> Stats:
        """What the connection has done so far."""
        transport = self._channel.transport
        trips = sorted(trip for trip, _ in self._times) or [0.0]
        served = sorted(server for _, server in self._times) or [0.0]
        return Stats(
            "none" if transport is None else _described(transport),
            self._requests,
            trips[len(trips) // 2],
            trips[int(len(trips) * 0.95)],
            served[len(served) // 2],
            *self._channel.bytes_carried,
            self._reconnects,
        )

    def forget(self) -> None:
        """Let go of the connection in a forked child, without ending it for the parent."""
        self._end = ConnectionLostError(f"{self.target.address}: connected in another process")
        self._channel.abandon()

    def give_up(self, error: ProtocolError) -> None:
        """Hang up on a server that does not keep to the rules; whoever asks next is told why."""
        self._end = self._end or error
        self.close()

    def close(self) -> None:
        """Hang up; a second call does nothing."""
        self._end = self._end or ConnectionLostError(f"{self.target.address}: it was closed")
        if self._heart is not None:
            self._heart.stop()
            self._heart = None
        self._channel.lose()


def is_passing(failure: ConnectionError) -> bool:
    """Whether a failure to connect may be over in a moment."""
    if isinstance(failure, RefusedError):
        return failure.reason in ("full", "server")
    return not isinstance(failure, SessionLostError | ProtocolError)


def _described(transport: Transport) -> str:
    is_shared = getattr(transport, "is_shared", False)
    return f"{transport.name}, shared memory" if is_shared else transport.name
