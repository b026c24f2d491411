"""What carries bytes between two ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["STALL_TIMEOUT", "MIN_RATE", "Transport", "flat", "remaining"]

STALL_TIMEOUT = 20.0
"""Seconds without a byte, in the middle of a message, after which a connection counts as lost."""

MIN_RATE = 1 << 16
"""Bytes a second, on the whole of a message: who is slower wants to keep us busy."""


class Transport(Protocol):
    """An ordered stream of bytes, of which every wait ends.

    One thread receives; one thread at a time sends. ``close`` may be called by any, and ends the
    waits of the others. Whatever has to do with the other end raises ConnectionLostError when there
    is no other end any more. ``stall_timeout`` are the seconds without a byte, in the middle of a
    message, after which there is none.
    """

    stall_timeout: float

    @property
    def name(self) -> str:
        """What is at the other end, for messages."""

    @property
    def bytes_sent(self) -> int:
        """How many bytes were sent so far."""

    @property
    def bytes_received(self) -> int:
        """How many bytes were received so far."""

    def send(self, parts: Sequence[Any], reads: bool = True) -> None:
        """Send these contiguous buffers, one after the other.

        While the other end takes nothing, since it waits for us to read, what it has sent is read
        ahead; without ``reads`` it is not, for a thread that is not the one that receives.
        """

    def peek(self, needed: int, timeout: float | None) -> bytes | None:
        """Wait for so many bytes, few of them, and return them; None when the time is over.

        They stay to be received, or to be skipped.
        """

    def skip(self, count: int) -> None:
        """Drop so many bytes, which were peeked at."""

    def receive_into(self, buffers: Sequence[Any]) -> None:
        """Fill these contiguous buffers, with bytes that are on their way."""

    def close(self) -> None:
        """End the connection, for both ends; a second call does nothing."""

    def abandon(self) -> None:
        """Let go of it in a forked child, without ending it for the parent."""


def remaining(deadline: float | None) -> float | None:
    """Seconds until then, none below 0; None for no limit."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def flat(buffer: Any) -> memoryview:
    """The bytes of a contiguous buffer, such as an array."""
    view = memoryview(buffer)
    return view.cast("B") if view.nbytes else memoryview(b"")
