"""The interface of a transport."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["MIN_RATE", "STALL_TIMEOUT", "Transport", "as_bytes", "remaining"]

STALL_TIMEOUT = 20.0
"""Seconds without progress in the middle of a message after which a connection counts as lost."""

MIN_RATE = 1 << 16
"""Bytes per second; a sender that is slower over a whole message is disconnected."""


class Transport(Protocol):
    """An ordered stream of bytes with timeouts.

    One thread receives, and one thread at a time sends. Any thread may call ``close``, which ends
    the waits of the others. All methods raise ConnectionLostError when the connection is lost.
    ``stall_timeout`` is the number of seconds without progress in the middle of a message after
    which it is.
    """

    stall_timeout: float

    @property
    def name(self) -> str:
        """The other end, for error messages."""

    @property
    def bytes_sent(self) -> int:
        """Number of bytes sent."""

    @property
    def bytes_received(self) -> int:
        """Number of bytes received."""

    def send(self, parts: Sequence[Any], reads: bool = True) -> None:
        """Send these contiguous buffers in order.

        While the other end does not read, because it is sending too, incoming bytes are buffered.
        A thread other than the receiving one must pass ``reads=False``.
        """

    def peek(self, needed: int, timeout: float | None) -> bytes | None:
        """Wait for a few bytes and return them without consuming them; None after the timeout."""

    def skip(self, count: int) -> None:
        """Consume bytes that ``peek`` returned."""

    def receive_into(self, buffers: Sequence[Any]) -> None:
        """Fill these contiguous buffers with the rest of a message."""

    def close(self) -> None:
        """Close the connection for both ends; a second call does nothing."""

    def release_in_child(self) -> None:
        """Release the socket in a forked child without closing the connection of the parent."""


def remaining(deadline: float | None) -> float | None:
    """Seconds until the deadline, at least 0; None for no limit."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def as_bytes(buffer: Any) -> memoryview:
    """View a contiguous buffer, such as an array, as bytes."""
    view = memoryview(buffer)
    return view.cast("B") if view.nbytes else memoryview(b"")
