"""A TLS socket for two threads, of which one receives and one sends."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from typing import Any

__all__ = ["TwoWaySocket"]

_TICK = 0.05
"""Seconds after which a wait looks up: the other thread may have taken what it waits for."""


class TwoWaySocket(ssl.SSLSocket):
    """What ``SSLContext.sslsocket_class`` is set to where two threads use a socket.

    OpenSSL does not allow that, and Python does not see to it before 3.13. So, once the handshake
    is done, nothing waits inside of OpenSSL, and one thread at a time is there.
    """

    _guard: threading.Lock | None = None  # there is one after the handshake
    _seconds: float | None = None  # the timeout that its user has set

    sending_timeout: float | None = None
    """Seconds without a byte that is sent, after which sending fails."""

    def do_handshake(self, block: bool = False) -> None:
        """Begin TLS; from then on two threads may use the socket."""
        super().do_handshake(block)
        self._seconds = super().gettimeout()
        super().settimeout(0.0)
        self._guard = threading.Lock()

    def settimeout(self, value: float | None) -> None:
        """Set how long the calls of users wait."""
        if self._guard is None:
            super().settimeout(value)
        else:
            self._seconds = value

    def gettimeout(self) -> float | None:
        """How long the calls of users wait."""
        return super().gettimeout() if self._guard is None else self._seconds

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Receive what there is."""
        received: bytes = self._in_turn(self._seconds, super().recv, buflen, flags)
        return received

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send all of it."""
        left = memoryview(data).cast("B")
        seconds = self._seconds if self.sending_timeout is None else self.sending_timeout
        while len(left):
            left = left[self._in_turn(seconds, super().send, left, flags) :]

    def _in_turn(self, seconds: float | None, call: Any, *arguments: Any) -> Any:
        if self._guard is None:
            return call(*arguments)
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            try:
                with self._guard:
                    return call(*arguments)
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, deadline)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT, deadline)

    def _wait(self, event: int, deadline: float | None) -> None:
        left = _TICK if deadline is None else min(_TICK, deadline - time.monotonic())
        if left <= 0:
            raise TimeoutError("timed out")
        poller = select.poll()
        poller.register(self, event)
        poller.poll(left * 1000)

    def shutdown(self, how: int) -> None:
        """End the connection; a thread that is inside does not go on without TLS."""
        socket.socket.shutdown(self, how)
