"""Numbered messages over a connection that may be replaced: none is lost, none is read twice.

Each end counts what it sends, tells with every message which number it has received last, and keeps
what the other end has not yet told of. After a connection was lost, both ends tell each other what
they have received, and what is missing is sent again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from shoal.errors import ConnectionLostError, ProtocolError
from shoal.remote._transports.base import MIN_RATE, Transport, flat
from shoal.remote._wire import HEADER_BYTES, Header, Kind, pack_header, read_header

__all__ = ["Channel"]

_SMALL = 1 << 14

_MOST_KEPT, _MOST_BYTES_KEPT = 1 << 14, 1 << 28
"""Messages, and their bytes, that are kept for an other end that acknowledges nothing."""

_MANY, _MUCH = 1 << 8, 1 << 22
"""Messages, and their bytes, after which one that only receives acknowledges them."""


class Channel:
    """One end of a session's connections.

    Args:
        transport: The first connection, if there is one already.
        keeps: Whether messages are kept until the other end has them. Without it, a lost connection
            is the end.
        largest: Bytes that a message of the other end may have.
    """

    def __init__(
        self, transport: Transport | None = None, *, keeps: bool, largest: int = 1 << 62
    ) -> None:
        self.transport = transport
        self._name = "it"  # that of the last connection
        self.largest = largest
        self.sent = 0
        self.received = 0
        self.keeps = keeps
        self._kept: deque[tuple[int, list[Any]]] = deque()
        self._bytes_kept = 0
        self.most_kept = _MOST_KEPT
        """Messages that are kept for an other end that acknowledges nothing."""
        self._unacknowledged = [0, 0]  # messages that we have received, and their bytes
        self._bytes_before = [0, 0]  # sent and received over connections that were lost
        self._discard = bytearray(_SMALL)
        self._is_broken = False  # nothing more can be sent over this connection
        self._loss: ConnectionLostError | None = None  # why, if somebody else has found out
        self.is_inside = False
        """Whether a message was begun to be read, and not completed."""

    # Out

    def send(
        self,
        kind: Kind,
        meta: bytes = b"",
        body: Sequence[Any] = (),
        *,
        size: int = 0,
        flags: int = 0,
        rows: int = 0,
        micros: int = 0,
        reply_to: int = 0,
        lasting: bool = False,
    ) -> int:
        """Send a message, and return its number.

        Args:
            kind: What it is.
            meta: What is not a tensor.
            body: Tensors, as buffers.
            size: Their bytes, all together.
            flags: See :mod:`shoal.remote._wire`.
            rows: How many slots it speaks of.
            micros: What a server has spent on it.
            reply_to: The number of the request that it answers.
            lasting: Whether the tensors stay as they are, and need not be copied to be kept.
        """
        # An interrupt may come anywhere: a message counts as sent from the moment on in which it
        # is kept, or, where nothing is kept, the connection is given up.
        number = self.sent + 1
        header = Header(kind, flags, rows, len(meta), micros, number, self.received, reply_to, size)
        parts = [pack_header(header), meta, *body]
        if self.keeps:
            if not lasting or size < _SMALL:
                parts = [b"".join(map(flat, parts))]
            self._keep(number, parts)
        elif self.transport is None:
            raise ConnectionLostError(f"{self._name}: the connection was lost")
        was_broken, self._is_broken = self._is_broken, True  # until all of it is on its way
        self.sent = number
        self._unacknowledged = [0, 0]
        if self.transport is not None and not was_broken:
            self._deliver(self.transport, parts)
        return number

    def _keep(self, number: int, parts: list[Any]) -> None:
        self._drop_unsent()
        size = sum(memoryview(part).nbytes for part in parts)
        is_too_much = self._bytes_kept + size > max(_MOST_BYTES_KEPT, 4 * size)
        if self._kept and (is_too_much or len(self._kept) >= self.most_kept):
            raise ProtocolError("the other end acknowledges nothing of what it is sent")
        self._bytes_kept += size
        self._kept.append((number, parts))

    def _drop_unsent(self) -> None:
        """Forget what was kept and then, after an interrupt, does not count as sent."""
        while self._kept and self._kept[-1][0] > self.sent:
            self._forget(self._kept.pop())

    def _forget(self, kept: tuple[int, list[Any]]) -> None:
        self._bytes_kept -= sum(memoryview(part).nbytes for part in kept[1])

    def tell(self, kind: Kind, meta: bytes = b"") -> None:
        """Send a message that may be lost; another thread may be receiving."""
        transport = self.transport
        if transport is None or self._is_broken:
            return
        header = Header(kind, 0, 0, len(meta), 0, 0, self.received, 0, 0)
        self._unacknowledged = [0, 0]
        try:
            transport.send([pack_header(header), meta], reads=False)
        except BaseException as error:
            self._is_broken = True
            if not isinstance(error, ConnectionLostError):
                raise

    def _deliver(self, transport: Transport, parts: list[Any]) -> None:
        try:
            transport.send(parts)
        except ConnectionLostError:
            return  # who receives next learns of it, after what the other end has said before
        self._is_broken = False

    @property
    def is_broken(self) -> bool:
        """Whether nothing more can be sent over the connection."""
        return self._is_broken

    def break_off(self, loss: ConnectionLostError | None = None, *, and_lose: bool = False) -> None:
        """Nothing more can be sent over this connection; what has come can still be read.

        Unless it is lost as well. Who receives next is told of this loss.
        """
        self._is_broken = True
        if and_lose:
            self.lose()
        self._loss = loss or self._loss

    # In

    def next_header(self, timeout: float | None) -> Header | None:
        """Wait for a message that was not received before; None when the time is over.

        Its meta and body must be read next, and then :meth:`complete` called.
        """
        while True:
            transport = self.transport
            if transport is None:
                raise self._loss or ConnectionLostError(f"{self._name}: the connection was lost")
            try:
                head = transport.peek(HEADER_BYTES, 0.0 if self._is_broken else timeout)
                if head is None and self._is_broken:
                    raise ConnectionLostError(f"{transport.name}: the connection was lost")
            except ConnectionLostError as error:
                raise self._loss or error from None
            if head is None:
                return None
            header = read_header(head)
            self.is_inside = True
            transport.skip(HEADER_BYTES)
            if header.ack:
                self._acknowledged(header.ack)
            if not header.number or header.number == self.received + 1:
                return header
            if header.number > self.received:
                raise ProtocolError(
                    f"message {header.number} has come after message {self.received}"
                )
            self._pass_over(transport, header.meta + header.body)
            self.is_inside = False

    def read_meta(self, header: Header, limit: int) -> bytearray:
        """What is not a tensor of a message."""
        if header.meta > limit:
            raise ProtocolError(f"{header.meta} bytes of meta are announced, the limit is {limit}")
        meta = bytearray(header.meta)
        if header.meta:
            self.read_into([meta])
        return meta

    def read_into(self, buffers: Sequence[Any]) -> None:
        """Read the next parts of a message into these buffers."""
        transport = self.transport
        if transport is None:
            raise ConnectionLostError(f"{self._name}: the connection was lost")
        transport.receive_into(buffers)

    def complete(self, header: Header) -> None:
        """A message was read to its end, and what it says was noted."""
        if header.number:
            self.received = header.number
            self._unacknowledged[0] += 1
            self._unacknowledged[1] += header.meta + header.body
        self.is_inside = False

    @property
    def owes_acknowledgement(self) -> bool:
        """Whether so much has come since the last message that the other end must hear of it."""
        messages, size = self._unacknowledged
        return self.keeps and (messages >= _MANY or size >= _MUCH)

    def _pass_over(self, transport: Transport, size: int) -> None:
        """Read the rest of a message that was received before."""
        if size > self.largest:
            raise ProtocolError(f"{size} bytes are announced, {self.largest} may be")
        deadline = time.monotonic() + transport.stall_timeout + size / MIN_RATE
        while size > 0:
            if time.monotonic() > deadline:
                raise ConnectionLostError(f"{transport.name}: a message was not completed")
            taken = min(size, len(self._discard))
            transport.receive_into([memoryview(self._discard)[:taken]])
            size -= taken

    def _acknowledged(self, number: int) -> None:
        if number > self.sent:
            raise ProtocolError(f"message {number} is acknowledged, {self.sent} were sent")
        kept = self._kept
        while kept and kept[0][0] <= number:
            self._forget(kept.popleft())

    # A new connection

    def lose(self) -> None:
        """End the connection; messages go on being numbered and kept."""
        transport, self.transport = self.transport, None
        self._loss = None
        if transport is not None:
            self._name = transport.name
            self._bytes_before[0] += transport.bytes_sent
            self._bytes_before[1] += transport.bytes_received
            transport.close()

    def abandon(self) -> None:
        """Let go of the connection in a forked child, without ending it for the parent."""
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.abandon()

    @property
    def bytes_carried(self) -> tuple[int, int]:
        """Bytes that were sent and received so far, over all connections."""
        sent, received = self._bytes_before
        transport = self.transport
        if transport is None:
            return sent, received
        return sent + transport.bytes_sent, received + transport.bytes_received

    def resume(self, transport: Transport, received: int) -> None:
        """Go on over another connection; the other end has received so many messages."""
        self.lose()
        self._drop_unsent()
        self._acknowledged(received)
        if self._kept and self._kept[0][0] != received + 1:
            raise ProtocolError(f"message {received + 1} is not kept any more")
        self.is_inside = False
        self._is_broken = True
        self.transport = transport
        for _, parts in list(self._kept):
            self._is_broken = True
            self._deliver(transport, parts)
            if self._is_broken:
                return
        self._is_broken = False
