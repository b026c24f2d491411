"""The receiving half of the transports that are written in Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from shoal.errors import ConnectionLostError
from shoal.remote._transports.base import MIN_RATE, STALL_TIMEOUT, as_bytes, remaining

__all__ = ["MAX_BUFFERED", "BufferedReceiver"]

MAX_BUFFERED = 1 << 26
"""Bytes that are buffered while the other end does not read."""


class BufferedReceiver:
    """The receiving half of a transport; a subclass provides :meth:`_receive`."""

    name: str

    def __init__(self) -> None:
        self.stall_timeout = STALL_TIMEOUT
        self.bytes_sent = 0
        self.bytes_received = 0
        self._buffer = bytearray()

    def _receive(self, timeout: float | None) -> bytes:
        """Receive the next bytes, of any number; return none after the timeout."""
        raise NotImplementedError

    def _fill(self, timeout: float | None) -> bool:
        received = self._receive(timeout)
        self.bytes_received += len(received)
        self._buffer += received
        return bool(received)

    def peek(self, needed: int, timeout: float | None) -> bytes | None:
        """Wait for a few bytes and return them without consuming them; None after the timeout."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while len(self._buffer) < needed:
            if not self._fill(remaining(deadline)):
                return None
        return bytes(self._buffer[:needed])

    def skip(self, count: int) -> None:
        """Consume bytes that ``peek`` returned."""
        del self._buffer[:count]

    def receive_into(self, buffers: Sequence[Any]) -> None:
        """Fill these contiguous buffers with the rest of a message."""
        views = list(map(as_bytes, buffers))
        deadline = time.monotonic() + self.stall_timeout + sum(map(len, views)) / MIN_RATE
        for view in views:
            start = 0
            while start < len(view):
                timeout = min(self.stall_timeout, deadline - time.monotonic())
                if not self._buffer and (timeout <= 0 or not self._fill(timeout)):
                    raise ConnectionLostError(f"{self.name}: a message was not completed")
                count = min(len(view) - start, len(self._buffer))
                view[start : start + count] = self._buffer[:count]
                start += count
                self.skip(count)
