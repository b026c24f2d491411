"""A TLS socket for two threads: one receives and one sends."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from typing import Any

__all__ = ["DuplexTlsSocket"]

_POLL_INTERVAL = 0.05
"""Longest wait in seconds: the other thread may have consumed the awaited event."""


class DuplexTlsSocket(ssl.SSLSocket):
    """An ``SSLContext.sslsocket_class`` for sockets that two threads use at once.

    OpenSSL does not support that, and Python has no lock for it before 3.13. So after the
    handshake no call blocks inside OpenSSL, and a lock admits one thread at a time.
    """

    _guard: threading.Lock | None = None  # set after the handshake
    _seconds: float | None = None  # the timeout for callers

    sending_timeout: float | None = None
    """Seconds without progress after which sending fails."""

    def do_handshake(self, block: bool = False) -> None:
        """Perform the handshake; afterwards two threads may use the socket."""
        super().do_handshake(block)
        self._seconds = super().gettimeout()
        super().settimeout(0.0)
        self._guard = threading.Lock()

    def settimeout(self, value: float | None) -> None:
        """Set the timeout of calls."""
        if self._guard is None:
            super().settimeout(value)
        else:
            self._seconds = value

    def gettimeout(self) -> float | None:
        """Return the timeout of calls."""
        return super().gettimeout() if self._guard is None else self._seconds

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Receive up to ``buflen`` bytes."""
        received: bytes = self._call(self._seconds, super().recv, buflen, flags)
        return received

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send all of the data."""
        rest = memoryview(data).cast("B")
        seconds = self._seconds if self.sending_timeout is None else self.sending_timeout
        while len(rest):
            rest = rest[self._call(seconds, super().send, rest, flags) :]

    def _call(self, seconds: float | None, function: Any, *arguments: Any) -> Any:
        if self._guard is None:
            return function(*arguments)
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            try:
                with self._guard:
                    return function(*arguments)
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, deadline)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT, deadline)

    def _wait(self, event: int, deadline: float | None) -> None:
        timeout = _POLL_INTERVAL
        if deadline is not None:
            timeout = min(timeout, deadline - time.monotonic())
        if timeout <= 0:
            raise TimeoutError("timed out")
        poller = select.poll()
        poller.register(self, event)
        poller.poll(timeout * 1000)

    def shutdown(self, how: int) -> None:
        """Shut down the connection; a thread inside a call does not continue without TLS."""
        socket.socket.shutdown(self, how)
