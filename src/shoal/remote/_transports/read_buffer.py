"""Bytes that were received ahead, for transports that are written in Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from shoal.errors import ConnectionLostError
from shoal.remote._transports.base import STALL_TIMEOUT, MIN_RATE, flat, remaining

__all__ = ["MOST_AHEAD", "ReadingAhead"]

MOST_AHEAD = 1 << 26
"""Bytes that are received ahead while the other end does not read."""


class ReadingAhead:
    """The receiving half of a transport, over :meth:`_receive`, which a subclass provides."""

    name: str

    def __init__(self) -> None:
        self.stall_timeout = STALL_TIMEOUT
        self.bytes_sent = 0
        self.bytes_received = 0
        self._ahead = bytearray()

    def _receive(self, timeout: float | None) -> bytes:
        """What comes next, of any length; nothing when the time is over."""
        raise NotImplementedError

    def _take_in(self, timeout: float | None) -> bool:
        received = self._receive(timeout)
        self.bytes_received += len(received)
        self._ahead += received
        return bool(received)

    def peek(self, needed: int, timeout: float | None) -> bytes | None:
        """Wait for so many bytes, few of them, and return them; None when the time is over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while len(self._ahead) < needed:
            if not self._take_in(remaining(deadline)):
                return None
        return bytes(self._ahead[:needed])

    def skip(self, count: int) -> None:
        """Drop so many bytes, which were peeked at."""
        del self._ahead[:count]

    def receive_into(self, buffers: Sequence[Any]) -> None:
        """Fill these contiguous buffers, with bytes that are on their way."""
        views = list(map(flat, buffers))
        deadline = time.monotonic() + self.stall_timeout + sum(map(len, views)) / MIN_RATE
        for view in views:
            place = 0
            while place < len(view):
                left = min(self.stall_timeout, deadline - time.monotonic())
                if not self._ahead and (left <= 0 or not self._take_in(left)):
                    raise ConnectionLostError(f"{self.name}: a message was not completed")
                taken = min(len(view) - place, len(self._ahead))
                view[place : place + taken] = self._ahead[:taken]
                place += taken
                self.skip(taken)
