"""Reliable, ordered messages over a connection that may be replaced.

Each end numbers its messages, acknowledges the newest number it has received with every message it
sends, and keeps its own messages until they are acknowledged. After a reconnect, both ends
exchange the newest numbers they have received, and the missing messages are retransmitted. So no
message is lost, and none is processed twice.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from shoal.errors import ConnectionLostError, ProtocolError
from shoal.remote._transports.base import MIN_RATE, Transport, as_bytes
from shoal.remote._wire import HEADER_BYTES, Header, Kind, pack_header, read_header

__all__ = ["Channel"]

_SMALL = 1 << 14

_MAX_UNACKNOWLEDGED, _MAX_UNACKNOWLEDGED_BYTES = 1 << 14, 1 << 28
"""Limits on the messages that are kept for a peer that acknowledges nothing."""

_ACK_MESSAGES, _ACK_BYTES = 1 << 8, 1 << 22
"""Messages and bytes after which an end that only receives sends an acknowledgement."""


class Channel:
    """One end of a session's message stream.

    Args:
        transport: The first connection, if it exists already.
        retransmits: Whether messages are kept for retransmission. Without it, a lost connection
            cannot be replaced.
        max_message: Largest incoming message in bytes.
    """

    def __init__(
        self, transport: Transport | None = None, *, retransmits: bool, max_message: int = 1 << 62
    ) -> None:
        self.transport = transport
        self._name = "the connection"  # the name of the last transport
        self.max_message = max_message
        self.sent = 0
        self.received = 0
        self.retransmits = retransmits
        self._unacknowledged: deque[tuple[int, list[Any]]] = deque()
        self._unacknowledged_bytes = 0
        self.max_unacknowledged = _MAX_UNACKNOWLEDGED
        """Largest number of messages that are kept for a peer that acknowledges nothing."""
        self._received_since_ack = [0, 0]  # messages and bytes
        self._bytes_before = [0, 0]  # sent and received over previous connections
        self._discard = bytearray(_SMALL)
        self._is_broken = False  # nothing more can be sent over this connection
        self._loss: ConnectionLostError | None = None  # the reason, if another thread found out
        self.is_receive_incomplete = False
        """Whether a message was received in part."""

    # Sending

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
        is_immutable: bool = False,
    ) -> int:
        """Send a message, and return its number.

        Args:
            kind: The kind of the message.
            meta: The part that is not tensors.
            body: The tensors, as buffers.
            size: Total size of the body in bytes.
            flags: See :mod:`shoal.remote._wire`.
            rows: Number of slots in the body.
            micros: Microseconds that the server spent on the request.
            reply_to: The number of the request that this message responds to.
            is_immutable: Whether the body never changes, so that it need not be copied to be kept.
        """
        # An interrupt may arrive between any two lines. A message counts as sent once it is kept
        # for retransmission; without retransmission, the connection is marked as broken until the
        # whole message was written.
        number = self.sent + 1
        header = Header(kind, flags, rows, len(meta), micros, number, self.received, reply_to, size)
        parts = [pack_header(header), meta, *body]
        if self.retransmits:
            if not is_immutable or size < _SMALL:
                parts = [b"".join(map(as_bytes, parts))]
            self._retain(number, parts)
        elif self.transport is None:
            raise ConnectionLostError(f"{self._name}: the connection was lost")
        was_broken, self._is_broken = self._is_broken, True
        self.sent = number
        self._received_since_ack = [0, 0]
        if self.transport is not None and not was_broken:
            self._transmit(self.transport, parts)
        return number

    def _retain(self, number: int, parts: list[Any]) -> None:
        self._drop_unsent()
        size = sum(memoryview(part).nbytes for part in parts)
        limit = max(_MAX_UNACKNOWLEDGED_BYTES, 4 * size)
        is_too_large = self._unacknowledged_bytes + size > limit
        is_too_many = len(self._unacknowledged) >= self.max_unacknowledged
        if self._unacknowledged and (is_too_large or is_too_many):
            raise ProtocolError("the other end does not acknowledge messages")
        self._unacknowledged_bytes += size
        self._unacknowledged.append((number, parts))

    def _drop_unsent(self) -> None:
        """Release messages that were kept but, after an interrupt, do not count as sent."""
        while self._unacknowledged and self._unacknowledged[-1][0] > self.sent:
            self._release(self._unacknowledged.pop())

    def _release(self, message: tuple[int, list[Any]]) -> None:
        self._unacknowledged_bytes -= sum(memoryview(part).nbytes for part in message[1])

    def send_unnumbered(self, kind: Kind, meta: bytes = b"") -> None:
        """Send a message that may be lost. Another thread may be receiving."""
        transport = self.transport
        if transport is None or self._is_broken:
            return
        header = Header(kind, 0, 0, len(meta), 0, 0, self.received, 0, 0)
        self._received_since_ack = [0, 0]
        try:
            transport.send([pack_header(header), meta], reads=False)
        except BaseException as error:
            self._is_broken = True
            if not isinstance(error, ConnectionLostError):
                raise

    def _transmit(self, transport: Transport, parts: list[Any]) -> None:
        try:
            transport.send(parts)
        except ConnectionLostError:
            return  # the next receive raises it, after all messages that have arrived
        self._is_broken = False

    @property
    def is_broken(self) -> bool:
        """Whether nothing more can be sent over the connection."""
        return self._is_broken

    def mark_broken(
        self, loss: ConnectionLostError | None = None, *, disconnect: bool = False
    ) -> None:
        """Send nothing more over this connection; messages that have arrived can still be read.

        With ``disconnect`` they cannot. The next receive raises ``loss``.
        """
        self._is_broken = True
        if disconnect:
            self.disconnect()
        self._loss = loss or self._loss

    # Receiving

    def next_header(self, timeout: float | None) -> Header | None:
        """Wait for the next new message; None after the timeout.

        The caller must read its meta and body next, and then call :meth:`complete`.
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
            self.is_receive_incomplete = True
            transport.skip(HEADER_BYTES)
            if header.ack:
                self._handle_ack(header.ack)
            if not header.number or header.number == self.received + 1:
                return header
            if header.number > self.received:
                raise ProtocolError(
                    f"message {header.number} arrived after message {self.received}: messages are "
                    "missing"
                )
            self._discard_duplicate(transport, header.meta + header.body)
            self.is_receive_incomplete = False

    def read_meta(self, header: Header, limit: int) -> bytearray:
        """Receive the part of a message that is not tensors."""
        if header.meta > limit:
            raise ProtocolError(f"a message has {header.meta} bytes of meta, the limit is {limit}")
        meta = bytearray(header.meta)
        if header.meta:
            self.read_into([meta])
        return meta

    def read_into(self, buffers: Sequence[Any]) -> None:
        """Receive the next parts of a message into these buffers."""
        transport = self.transport
        if transport is None:
            raise ConnectionLostError(f"{self._name}: the connection was lost")
        transport.receive_into(buffers)

    def complete(self, header: Header) -> None:
        """Mark a message as received, after its content was processed."""
        if header.number:
            self.received = header.number
            self._received_since_ack[0] += 1
            self._received_since_ack[1] += header.meta + header.body
        self.is_receive_incomplete = False

    @property
    def should_acknowledge(self) -> bool:
        """Whether enough was received to send an acknowledgement without another message."""
        messages, size = self._received_since_ack
        return self.retransmits and (messages >= _ACK_MESSAGES or size >= _ACK_BYTES)

    def _discard_duplicate(self, transport: Transport, size: int) -> None:
        """Skip the rest of a message that was received before."""
        if size > self.max_message:
            raise ProtocolError(f"a message has {size} bytes, the limit is {self.max_message}")
        deadline = time.monotonic() + transport.stall_timeout + size / MIN_RATE
        while size > 0:
            if time.monotonic() > deadline:
                raise ConnectionLostError(f"{transport.name}: a message was not completed")
            count = min(size, len(self._discard))
            transport.receive_into([memoryview(self._discard)[:count]])
            size -= count

    def _handle_ack(self, number: int) -> None:
        if number > self.sent:
            raise ProtocolError(f"message {number} is acknowledged, but only {self.sent} were sent")
        messages = self._unacknowledged
        while messages and messages[0][0] <= number:
            self._release(messages.popleft())

    # Connections

    def disconnect(self) -> None:
        """Close the connection; messages are still numbered and kept."""
        transport, self.transport = self.transport, None
        self._loss = None
        if transport is not None:
            self._name = transport.name
            self._bytes_before[0] += transport.bytes_sent
            self._bytes_before[1] += transport.bytes_received
            transport.close()

    def release_in_child(self) -> None:
        """Release the socket in a forked child without closing the connection of the parent."""
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.release_in_child()

    @property
    def byte_counts(self) -> tuple[int, int]:
        """Bytes sent and received over all connections."""
        sent, received = self._bytes_before
        transport = self.transport
        if transport is None:
            return sent, received
        return sent + transport.bytes_sent, received + transport.bytes_received

    def resume(self, transport: Transport, received: int) -> None:
        """Continue over a new connection; ``received`` is the newest number the peer has."""
        self.disconnect()
        self._drop_unsent()
        self._handle_ack(received)
        messages = self._unacknowledged
        if messages and messages[0][0] != received + 1:
            raise ProtocolError(f"message {received + 1} cannot be retransmitted")
        self.is_receive_incomplete = False
        self._is_broken = True
        self.transport = transport
        for _, parts in list(messages):
            self._is_broken = True
            self._transmit(transport, parts)
            if self._is_broken:
                return
        self._is_broken = False
