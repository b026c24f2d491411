"""A session of the server: one client, its pool, and the requests in progress."""

from __future__ import annotations

import threading
import time

from gymnasium.vector.utils import batch_space

from shoal.errors import ConnectionLostError, ProtocolError
from shoal.pools import Pool
from shoal.remote._channel import Channel
from shoal.remote._handshake import receive_client_ready, reject, send_unnumbered
from shoal.remote._hosting import Hosted
from shoal.remote._messages import ClientHello, SessionEnded, SessionInfo, pack_message
from shoal.remote._request_handler import RequestHandler, SessionOptions
from shoal.remote._space_codec import encode_space
from shoal.remote._transports.base import STALL_TIMEOUT, Transport
from shoal.remote._transports.shared_memory import (
    Memory,
    make_memory,
    ring_capacity,
    supports_shared_memory,
    switch_to_shared_memory,
)
from shoal.remote._value_codec import pack_values
from shoal.remote._wire import CAPABILITIES, SHARES_MEMORY, Kind

__all__ = ["Session"]

_IDLE_INTERVAL = 0.2
"""Longest wait in seconds of an idle session before it checks its state."""

_POLL_INTERVALS = (0.001, 0.005)
"""Seconds between checks of the connection while the pool works: at first, and after a while."""

_LONG_WAIT = 0.05
"""Seconds without a result after which the longer interval is used."""

_HANDSHAKE_TIMEOUT = 10.0
"""Seconds for the last message of the handshake."""


class Session:
    """One client's vector.

    The thread that runs the session has created the pool, and is the only one to use it. The
    connection may be replaced: :meth:`attach` is called by another thread with a new one.
    """

    def __init__(
        self,
        identifier: bytes,
        hosted: Hosted,
        hello: ClientHello,
        pool: Pool,
        transport: Transport,
        options: SessionOptions,
        local_upgrade: str = "",
    ) -> None:
        self.identifier = identifier
        self.hosted = hosted
        self.client = hello.client
        self.priority = hello.priority
        self.ended = threading.Event()
        self._options = options
        self._pool = pool
        self._channel = Channel(retransmits=hello.resumable and options.session_ttl > 0)
        self._handler = RequestHandler(pool, self._channel, options, may_block=not hosted.exclusive)
        self._channel.max_message = self._handler.max_request
        # A busy client receives nothing, so a response per slot may be unacknowledged.
        self._channel.max_unacknowledged += pool.num_envs
        self._encoded_spaces = _encode_spaces(pool)
        self._capabilities = tuple(each for each in CAPABILITIES if each in hello.capabilities)
        self._local_upgrade = local_upgrade if SHARES_MEMORY in self._capabilities else ""
        self._ring = ring_capacity(self._handler.step_bytes)
        self._memory: Memory | None = None  # given to the client, and not in use yet
        self._last_message_at = self._lost_at = time.monotonic()
        self._changed = threading.Condition()
        # The next connection, and the number of the newest message that its client has received.
        self._next_connection: tuple[Transport, int] | None = (transport, 0)
        self._has_sent_spaces = False
        self._handshaking: Transport | None = None  # the connection whose handshake is in progress
        self._ending: SessionEnded | None = None

    # Called by other threads

    @property
    def ending(self) -> SessionEnded | None:
        """Why the session has ended or will end; None while it is active."""
        return self._ending

    def attach(self, transport: Transport, received: int) -> bool:
        """Continue over a new connection; return False if the session cannot be resumed."""
        with self._changed:
            if self._ending is not None or self.ended.is_set() or not self._channel.retransmits:
                return False
            replaced = [self._channel.transport, self._handshaking]
            if self._next_connection is not None:
                replaced.append(self._next_connection[0])
            self._next_connection = transport, received
            self._changed.notify_all()
        for old in replaced:
            if old is not None:
                old.close()
        return True

    def end(self, reason: str, message: str) -> None:
        """End the session as soon as possible."""
        with self._changed:
            self._ending = self._ending or SessionEnded(reason, message)
            self._changed.notify_all()

    def disconnect(self) -> None:
        """Close the connection of a session that does not end because its client keeps it busy."""
        for transport in (self._channel.transport, self._handshaking):
            if transport is not None:
                transport.close()

    def release_in_child(self) -> None:
        """Release the sockets in a forked child without closing the connections of the parent."""
        self._channel.release_in_child()
        following = None if self._next_connection is None else self._next_connection[0]
        for transport in (self._handshaking, following):
            if transport is not None:
                transport.release_in_child()

    def shared_memory(self) -> int:
        """Allocate memory to share with the client; return its descriptor, owned by the caller."""
        descriptor, self._memory = make_memory(self._ring)
        return descriptor

    # Called by the session's thread

    def run(self) -> None:
        """Serve the client until it closes the vector or is lost."""
        try:
            while self._ending is None and not self._handler.is_closed:
                try:
                    self._serve()
                except ConnectionLostError:
                    self._connection_lost()
                except ProtocolError as error:
                    self.end("protocol", str(error))
        except BaseException as error:
            self.end("error", f"the session has failed: {type(error).__name__}: {error}")
            raise
        finally:
            self._finish()

    def _finish(self) -> None:
        with self._changed:
            ending = self._ending = self._ending or SessionEnded("closed", "the session is closed")
            following, self._next_connection = self._next_connection, None
        try:
            if not self._handler.is_closed and self.hosted.safe_state is not None:
                self.hosted.safe_state()
        finally:
            try:
                if following is not None:
                    reject(following[0], "session", ending.message)
                if not self._handler.is_closed:
                    self._channel.send_unnumbered(Kind.SESSION_ENDED, pack_message(ending))
                    self._pool.close()
            finally:
                self._channel.disconnect()
                self.ended.set()

    def _complete_handshake(self, transport: Transport) -> None:
        pool = self._pool
        send_unnumbered(
            transport,
            Kind.SESSION_INFO,
            SessionInfo(
                self.identifier,
                self._channel.received,
                pool.num_envs,
                pool.autoreset_mode.value,
                pool.render_mode,
                b"" if self._has_sent_spaces else self._encoded_spaces,
                self._options.max_inflight,
                self._options.max_meta,
                self._options.session_ttl,
                self.hosted.lease if self.hosted.exclusive else None,
                self._local_upgrade if supports_shared_memory(transport) else "",
                self._ring,
                self._capabilities,
            ),
        )
        stall_timeout = STALL_TIMEOUT
        if self.hosted.exclusive:
            stall_timeout = min(stall_timeout, self.hosted.lease)
        deadline = time.monotonic() + min(_HANDSHAKE_TIMEOUT, stall_timeout)
        is_shared = receive_client_ready(transport, deadline, stall_timeout)
        memory, self._memory = self._memory, None
        if is_shared:
            if memory is None:
                raise ProtocolError("the client uses shared memory that it was not given")
            switch_to_shared_memory(transport, memory, self._ring, 0)

    def _serve(self) -> None:
        """Serve requests until the connection is lost or the session ends."""
        channel, handler = self._channel, self._handler
        idle_since = polled_at = time.monotonic()  # the last result, and the last poll of the pool
        while self._ending is None and not handler.is_closed:
            if self._next_connection is not None or channel.transport is None:
                self._await_connection()
            has_request = channel.transport is not None and self._serve_request()
            now = time.monotonic()
            if not handler.is_busy:
                idle_since = polled_at = now
            elif not has_request or now - polled_at > _POLL_INTERVALS[0]:
                # Neither requests nor results may starve while the other keeps arriving.
                timeout = 0.0 if has_request else _POLL_INTERVALS[now - idle_since > _LONG_WAIT]
                if handler.poll(timeout):
                    idle_since = now
                polled_at = time.monotonic()

    def _serve_request(self) -> bool:
        """Receive and handle a request; wait for it if the pool is idle."""
        handler = self._handler
        is_served = handler.serve_fast_path(_IDLE_INTERVAL)
        if is_served:
            self._last_message_at = time.monotonic()
            return True
        timeout = 0.0 if handler.is_busy or is_served is None else _IDLE_INTERVAL
        header = self._channel.next_header(timeout)
        if header is None and self._is_lease_over():
            # This process may have been suspended: a message may have arrived meanwhile.
            header = self._channel.next_header(0.0)
            if header is None:
                self.end("lease", f"no message for {self.hosted.lease} seconds")
        if header is None:
            return False
        self._last_message_at = time.monotonic()
        handler.handle(header)
        return True

    def _is_lease_over(self) -> bool:
        silence = time.monotonic() - self._last_message_at
        return self.hosted.exclusive and silence > self.hosted.lease

    def _connection_lost(self) -> None:
        self._channel.disconnect()
        self._lost_at = time.monotonic()
        if not self._channel.retransmits:
            self.end("connection", "the connection was lost")

    def _await_connection(self) -> None:
        """Take the next connection; wait for it if the pool is idle."""
        with self._changed:
            if self._next_connection is None:
                timeout = self._lost_at + self._options.session_ttl - time.monotonic()
                if self.hosted.exclusive:
                    lease_end = self._last_message_at + self.hosted.lease
                    timeout = min(timeout, lease_end - time.monotonic())
                if timeout <= 0:
                    self._ending = SessionEnded("connection", "the client did not reconnect")
                    return
                if self._handler.is_busy:
                    return
                self._changed.wait(min(timeout, _IDLE_INTERVAL))
            following, self._next_connection = self._next_connection, None
            self._handshaking = None if following is None else following[0]
        if following is not None:
            transport, received = following
            try:
                self._complete_handshake(transport)
            except BaseException:
                transport.close()
                raise
            finally:
                self._handshaking = None
            self._has_sent_spaces = True
            self._last_message_at = time.monotonic()
            self._channel.resume(transport, received)


def _encode_spaces(pool: Pool) -> bytes:
    """Encode the spaces and metadata of a pool."""
    spaces = pool.spaces
    default = batch_space(spaces.single_observation, pool.num_envs)
    return pack_values(
        {
            "observation": encode_space(spaces.single_observation),
            "batch": None if default == spaces.observation else encode_space(spaces.observation),
            "action": encode_space(spaces.single_action),
            "metadata": dict(pool.metadata),
        }
    )
