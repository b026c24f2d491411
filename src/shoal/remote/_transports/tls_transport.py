"""The transport over a TLS socket."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Any

from shoal.errors import ConnectionLostError
from shoal.remote._transports.base import as_bytes, remaining
from shoal.remote._transports.buffered_receiver import MAX_BUFFERED, BufferedReceiver

__all__ = ["TlsTransport"]

_POLL_INTERVAL = 0.05
"""Longest wait in seconds before the state is checked again."""

_CHUNK = 1 << 18


class TlsTransport(BufferedReceiver):
    """A transport that owns a connected TLS socket."""

    def __init__(self, connection: ssl.SSLSocket, name: str) -> None:
        super().__init__()
        self.name = name
        self._socket = connection
        self._lock = threading.Lock()  # both directions share the TLS state
        self._closed = False
        connection.setblocking(False)

    def send(self, parts: Sequence[Any], reads: bool = True) -> None:
        """Send these buffers in order."""
        data = memoryview(b"".join(map(as_bytes, parts)))
        idle_since = time.monotonic()
        while len(data):
            try:
                with self._lock:
                    sent = self._socket.send(data[:_CHUNK])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if time.monotonic() - idle_since > self.stall_timeout:
                    raise ConnectionLostError(
                        f"{self.name}: the other end has stopped reading"
                    ) from None
                reads = reads and len(self._buffer) < MAX_BUFFERED
                self._wait(to_read=reads, to_write=True, timeout=_POLL_INTERVAL)
                if reads:
                    self._fill(0.0)
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
                    received = self._socket.recv(_CHUNK)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                seconds = remaining(deadline)
                if seconds is not None and seconds <= 0:
                    return b""
                interval = _POLL_INTERVAL if seconds is None else min(seconds, _POLL_INTERVAL)
                self._wait(to_read=True, timeout=interval)
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

    def _lost(self, reason: object) -> ConnectionLostError:
        return ConnectionLostError(f"{self.name}: {reason}")

    def close(self) -> None:
        """Close the connection for both ends; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            # SSLSocket.shutdown would let a thread inside a call continue without TLS.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:
            return  # the other end has closed it already
        finally:
            self._socket.close()

    def release_in_child(self) -> None:
        """Release the socket in a forked child without closing the connection of the parent."""
        self._closed = True
        self._socket.close()
