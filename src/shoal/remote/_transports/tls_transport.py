"""A socket with TLS around it."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Any

from shoal.errors import ConnectionLostError
from shoal.remote._transports.base import flat, remaining
from shoal.remote._transports.read_buffer import MOST_AHEAD, ReadingAhead

__all__ = ["EncryptedTransport"]

_TICK = 0.05
"""Seconds after which a wait looks up."""

_PIECE = 1 << 18


class EncryptedTransport(ReadingAhead):
    """A connected socket with TLS, which it owns."""

    def __init__(self, connected: ssl.SSLSocket, name: str) -> None:
        super().__init__()
        self.name = name
        self._socket = connected
        self._lock = threading.Lock()  # of the state of TLS, which both directions have in common
        self._closed = False
        connected.setblocking(False)

    def send(self, parts: Sequence[Any], reads: bool = True) -> None:
        """Send these buffers, one after the other."""
        data = memoryview(b"".join(map(flat, parts)))
        idle_since = time.monotonic()
        while len(data):
            try:
                with self._lock:
                    sent = self._socket.send(data[:_PIECE])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if time.monotonic() - idle_since > self.stall_timeout:
                    raise ConnectionLostError(
                        f"{self.name}: the other end has stopped reading"
                    ) from None
                reads = reads and len(self._ahead) < MOST_AHEAD
                self._wait(to_read=reads, to_write=True, timeout=_TICK)
                if reads:
                    self._take_in(0.0)
            except (OSError, ValueError) as error:
                raise self._lost(error) from error
            else:
                data = data[sent:]
                self.bytes_sent += sent
                idle_since = time.monotonic()

    def _receive(self, timeout: float | None) -> bytes:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                with self._lock:
                    received = self._socket.recv(_PIECE)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                left = remaining(deadline)
                if left is not None and left <= 0:
                    return b""
                self._wait(to_read=True, timeout=_TICK if left is None else min(left, _TICK))
            except (OSError, ValueError) as error:
                raise self._lost(error) from error
            else:
                if not received:
                    raise self._lost("the other end has closed the connection")
                return received

    def _wait(self, *, to_read: bool, timeout: float, to_write: bool = False) -> None:
        events = (select.POLLIN if to_read else 0) | (select.POLLOUT if to_write else 0)
        try:
            poller = select.poll()
            poller.register(self._socket, events)
            poller.poll(timeout * 1000)
        except (OSError, ValueError) as error:
            raise self._lost(error) from error

    def _lost(self, what: object) -> ConnectionLostError:
        return ConnectionLostError(f"{self.name}: {what}")

    def close(self) -> None:
        """End the connection, for both ends; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            # Not its own, which would let a thread that is inside go on without TLS.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:
            return  # the other end was first
        finally:
            self._socket.close()

    def abandon(self) -> None:
        """Let go of it in a forked child, without ending it for the parent."""
        self._closed = True
        self._socket.close()
