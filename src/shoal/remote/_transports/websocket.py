"""The transport over websockets: the byte stream in binary messages."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from shoal.errors import ConnectionLostError, MissingExtraError
from shoal.remote._address import Address
from shoal.remote._transports.base import Transport, as_bytes
from shoal.remote._transports.buffered_receiver import BufferedReceiver
from shoal.remote._transports.tls_socket import DuplexTlsSocket

try:
    from websockets.exceptions import ConnectionClosed, InvalidHandshake
    from websockets.sync.client import connect
    from websockets.sync.server import serve
except ModuleNotFoundError as error:
    raise MissingExtraError('websockets is not installed: pip install "shoal[remote]"') from error

__all__ = ["WebSocketListener", "WebSocketTransport", "open_websocket"]

_CHUNK = 1 << 20
"""Bytes per websocket message."""

_OPEN_TIMEOUT = 3.0
"""Seconds for the opening handshake; closing the server waits for handshakes in progress."""

_SETTINGS: dict[str, Any] = {"compression": None, "max_size": _CHUNK, "max_queue": 64}


class WebSocketTransport(BufferedReceiver):
    """A connection of the ``websockets`` package as a byte stream."""

    def __init__(self, connection: Any, name: str, close: Callable[[], object]) -> None:
        super().__init__()
        self.name = name
        self.is_closed = threading.Event()
        self._connection = connection
        self._close = close

    def send(self, parts: Sequence[Any], reads: bool = True) -> None:  # noqa: ARG002
        """Send these buffers as binary messages."""
        stream = memoryview(b"".join(map(as_bytes, parts)))
        try:
            self._set_send_timeout(self._connection.socket)
            for start in range(0, len(stream), _CHUNK):
                self._connection.send(stream[start : start + _CHUNK])
        except (ConnectionClosed, OSError) as error:
            raise ConnectionLostError(f"{self.name}: {error}") from error
        self.bytes_sent += len(stream)

    def _set_send_timeout(self, connection: socket.socket) -> None:
        """Set a timeout for sending, but not for receiving."""
        if isinstance(connection, DuplexTlsSocket):
            connection.sending_timeout = self.stall_timeout
            return
        seconds, rest = divmod(self.stall_timeout, 1)
        limit = struct.pack("@ll", int(seconds), int(rest * 1e6))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def _receive(self, timeout: float | None) -> bytes:
        try:
            message = self._connection.recv(timeout)
        except TimeoutError:
            return b""
        except (ConnectionClosed, OSError) as error:
            raise ConnectionLostError(f"{self.name}: {error}") from error
        if isinstance(message, str):
            raise ConnectionLostError(f"{self.name}: got a text message, expected bytes")
        return bytes(message)

    def close(self) -> None:
        """Close the connection for both ends; a second call does nothing."""
        if not self.is_closed.is_set():
            self.is_closed.set()
            with suppress(OSError):  # the other end has closed it already
                # Without a closing handshake: a peer that does not read would not answer it.
                self._connection.socket.shutdown(socket.SHUT_RDWR)
            self._close()

    def release_in_child(self) -> None:
        """Release the socket in a forked child without closing the connection of the parent."""
        self.is_closed.set()
        self._connection.socket.close()


def _with_duplex_sockets(context: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """Let two threads use the sockets of a context, as the ``websockets`` package does."""
    if context is not None:
        context.sslsocket_class = DuplexTlsSocket
    return context


def open_websocket(
    address: Address, timeout: float | None, context: ssl.SSLContext | None
) -> Transport:
    """Connect to a websocket server."""
    url = str(replace(address, name=""))
    try:
        stack = ExitStack()
        opened = connect(
            url, open_timeout=timeout, ssl=_with_duplex_sockets(context), proxy=None, **_SETTINGS
        )
        connection = stack.enter_context(opened)
    except (InvalidHandshake, ConnectionClosed, OSError, EOFError) as error:
        raise ConnectionLostError(f"{address}: {error}") from error
    return WebSocketTransport(connection, url, stack.close)


class WebSocketListener:
    """A websocket server that turns connections into transports."""

    def __init__(
        self,
        address: Address,
        accept: Callable[[Transport], None],
        context: ssl.SSLContext | None,
    ) -> None:
        self._accept = accept
        # Browsers send an origin, other clients do not: web pages are refused.
        self._server = serve(
            self._handle,
            address.host,
            address.port,
            ssl=_with_duplex_sockets(context),
            origins=[None],
            open_timeout=_OPEN_TIMEOUT,
            **_SETTINGS,
        )
        self.address = replace(address, port=self._server.socket.getsockname()[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, name=f"shoal at {self.address}", daemon=True
        )
        self._thread.start()

    def _handle(self, connection: Any) -> None:
        transport = WebSocketTransport(connection, f"a client of {self.address}", connection.close)
        self._accept(transport)
        transport.is_closed.wait()  # returning would close the connection, which a session may use

    def release_in_child(self) -> None:
        """Release the socket in a forked child without closing the server of the parent."""
        self._server.socket.close()

    def close(self) -> None:
        """Stop accepting connections."""
        self._server.shutdown()
        self._thread.join(5.0)
