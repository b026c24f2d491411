"""A session of the server: one client, its pool, and what has not been answered yet."""

from __future__ import annotations

import threading
import time

from gymnasium.vector.utils import batch_space

from shoal.errors import ConnectionLostError, ProtocolError
from shoal.pools import Pool
from shoal.remote._channel import Channel
from shoal.remote._handshake import heard_ready, refuse, write_plain
from shoal.remote._hosting import Hosted
from shoal.remote._messages import Ended, Hello, Welcome, pack_message
from shoal.remote._request_handler import RequestHandler, Rules
from shoal.remote._space_codec import described_space
from shoal.remote._transports.base import STALL_TIMEOUT, Transport
from shoal.remote._transports.shared_memory import (
    Memory,
    go_over,
    is_shareable,
    make_memory,
    ring_capacity,
)
from shoal.remote._value_codec import pack_values
from shoal.remote._wire import CAPABILITIES, SHARES_MEMORY, Kind

__all__ = ["Session"]

_IDLE = 0.2
"""Seconds after which a session that waits for its client looks up."""

_SLICES = (0.001, 0.005)
"""Seconds between looks at the connection while the pool works: at first, and after a while."""

_A_WHILE = 0.05

_HANDSHAKE = 10.0
"""Seconds that a client has to say that it is ready."""


class Session:
    """One client's vector.

    The thread that runs it has built the pool, and is the only one to use it. Connections come and
    go; :meth:`attach` brings a new one from another thread.
    """

    def __init__(
        self,
        identifier: bytes,
        hosted: Hosted,
        hello: Hello,
        pool: Pool,
        transport: Transport,
        rules: Rules,
        local_upgrade: str = "",
    ) -> None:
        self.identifier = identifier
        self.hosted = hosted
        self.client = hello.client
        self.priority = hello.priority
        self.ended = threading.Event()
        self._rules = rules
        self._pool = pool
        self._channel = Channel(keeps=hello.resumable and rules.session_ttl > 0)
        self._handler = RequestHandler(pool, self._channel, rules, may_block=not hosted.exclusive)
        self._channel.largest = self._handler.largest_request
        # A client that is at something else receives nothing: an answer for each slot is kept.
        self._channel.most_kept += pool.num_envs
        self._described = _described(pool)
        self._capabilities = tuple(each for each in CAPABILITIES if each in hello.capabilities)
        self._local_upgrade = local_upgrade if SHARES_MEMORY in self._capabilities else ""
        self._ring = ring_capacity(self._handler.largest_message)
        self._memory: Memory | None = None  # for the client to go over to
        self._heard = self._lost_at = time.monotonic()
        self._news = threading.Condition()
        # A connection to go on over, and how many messages the client has received.
        self._offered: tuple[Transport, int] | None = (transport, 0)
        self._is_welcomed = False  # whether the client knows what its slots are
        self._newcomer: Transport | None = None  # the one that is being welcomed
        self._ending: Ended | None = None

    # Called by other threads

    @property
    def ending(self) -> Ended | None:
        """Why it has ended, or is about to."""
        return self._ending

    def attach(self, transport: Transport, received: int) -> bool:
        """Go on over another connection, of which the client has received so many messages."""
        with self._news:
            if self._ending is not None or self.ended.is_set() or not self._channel.keeps:
                return False
            replaced = [self._channel.transport, self._newcomer]
            if self._offered is not None:
                replaced.append(self._offered[0])
            self._offered = transport, received
            self._news.notify_all()
        for old in replaced:
            if old is not None:
                old.close()
        return True

    def end(self, reason: str, message: str) -> None:
        """Let the session end as soon as it can."""
        with self._news:
            self._ending = self._ending or Ended(reason, message)
            self._news.notify_all()

    def cut(self) -> None:
        """End the connection of a session that does not end, since its client keeps it busy."""
        for transport in (self._channel.transport, self._newcomer):
            if transport is not None:
                transport.close()

    def abandon(self) -> None:
        """Let go of the connection in a forked child, without ending it for the parent."""
        self._channel.abandon()
        offered = None if self._offered is None else self._offered[0]
        for transport in (self._newcomer, offered):
            if transport is not None:
                transport.abandon()

    def shared_memory(self) -> int:
        """A block to be shared with the client; the descriptor is the caller's."""
        descriptor, self._memory = make_memory(self._ring)
        return descriptor

    # The thread of the session

    def run(self) -> None:
        """Serve the client until it has closed the vector, or is lost."""
        try:
            while self._ending is None and not self._handler.is_closed:
                try:
                    self._converse()
                except ConnectionLostError:
                    self._lose()
                except ProtocolError as error:
                    self.end("protocol", str(error))
        except BaseException as error:
            self.end("error", f"it has failed: {type(error).__name__}: {error}")
            raise
        finally:
            self._finish()

    def _finish(self) -> None:
        with self._news:
            ending = self._ending = self._ending or Ended("closed", "it was closed")
            offered, self._offered = self._offered, None
        try:
            if not self._handler.is_closed and self.hosted.safe_state is not None:
                self.hosted.safe_state()
        finally:
            try:
                if offered is not None:
                    refuse(offered[0], "session", ending.message)
                if not self._handler.is_closed:
                    self._channel.tell(Kind.ENDED, pack_message(ending))
                    self._pool.close()
            finally:
                self._channel.lose()
                self.ended.set()

    def _welcome(self, transport: Transport) -> None:
        pool = self._pool
        write_plain(
            transport,
            Kind.WELCOME,
            Welcome(
                self.identifier,
                self._channel.received,
                pool.num_envs,
                pool.autoreset_mode.value,
                pool.render_mode,
                b"" if self._is_welcomed else self._described,
                self._rules.max_inflight,
                self._rules.max_meta,
                self._rules.session_ttl,
                self.hosted.lease if self.hosted.exclusive else None,
                self._local_upgrade if is_shareable(transport) else "",
                self._ring,
                self._capabilities,
            ),
        )
        patience = min(STALL_TIMEOUT, self.hosted.lease) if self.hosted.exclusive else STALL_TIMEOUT
        is_shared = heard_ready(transport, time.monotonic() + min(_HANDSHAKE, patience), patience)
        memory, self._memory = self._memory, None
        if is_shared:
            if memory is None:
                raise ProtocolError("the client shares memory that it was not given")
            go_over(transport, memory, self._ring, 0)

    def _converse(self) -> None:
        """Answer requests for as long as the connection lasts."""
        channel, handler = self._channel, self._handler
        # Since when the pool has had nothing to tell, and when it was asked last.
        quiet_since = polled_at = time.monotonic()
        while self._ending is None and not handler.is_closed:
            if self._offered is not None or channel.transport is None:
                self._go_on()
            is_heard = channel.transport is not None and self._hear()
            now = time.monotonic()
            if not handler.is_busy:
                quiet_since = polled_at = now
            elif not is_heard or now - polled_at > _SLICES[0]:
                # A client that has more to say is not kept waiting, nor kept from its answers.
                patience = 0.0 if is_heard else _SLICES[now - quiet_since > _A_WHILE]
                if handler.poll(patience):
                    quiet_since = now
                polled_at = time.monotonic()

    def _hear(self) -> bool:
        """Take the next request, for which it waits if there is nothing else to do."""
        handler = self._handler
        is_served = handler.serve_fast_path(_IDLE)
        if is_served:
            self._heard = time.monotonic()
            return True
        patience = 0.0 if handler.is_busy or is_served is None else _IDLE
        header = self._channel.next_header(patience)
        if header is None and self._is_lease_over():
            # We may have been stopped ourselves meanwhile: what lies there counts.
            header = self._channel.next_header(0.0)
            if header is None:
                self.end("lease", f"nothing was heard for {self.hosted.lease} seconds")
        if header is None:
            return False
        self._heard = time.monotonic()
        handler.handle(header)
        return True

    def _is_lease_over(self) -> bool:
        return self.hosted.exclusive and time.monotonic() - self._heard > self.hosted.lease

    def _lose(self) -> None:
        self._channel.lose()
        self._lost_at = time.monotonic()
        if not self._channel.keeps:
            self.end("connection", "the connection was lost")

    def _go_on(self) -> None:
        """Take the next connection, or wait for it where there is nothing else to do."""
        with self._news:
            if self._offered is None:
                patience = self._lost_at + self._rules.session_ttl - time.monotonic()
                if self.hosted.exclusive:
                    patience = min(patience, self._heard + self.hosted.lease - time.monotonic())
                if patience <= 0:
                    self._ending = Ended("connection", "the client has not come back")
                    return
                if self._handler.is_busy:
                    return
                self._news.wait(min(patience, _IDLE))
            offered, self._offered = self._offered, None
            self._newcomer = None if offered is None else offered[0]
        if offered is not None:
            transport, received = offered
            try:
                self._welcome(transport)
            except BaseException:
                transport.close()
                raise
            finally:
                self._newcomer = None
            self._is_welcomed = True
            self._heard = time.monotonic()
            self._channel.resume(transport, received)


def _described(pool: Pool) -> bytes:
    """What a client must know of a pool's slots."""
    spaces = pool.spaces
    usual = batch_space(spaces.single_observation, pool.num_envs)
    return pack_values(
        {
            "observation": described_space(spaces.single_observation),
            "batch": None if usual == spaces.observation else described_space(spaces.observation),
            "action": described_space(spaces.single_action),
            "metadata": dict(pool.metadata),
        }
    )
