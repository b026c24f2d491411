"""Websockets, for networks that let nothing else through: the same bytes in binary messages."""

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
from shoal.remote._transports.base import Transport, flat
from shoal.remote._transports.read_buffer import ReadingAhead
from shoal.remote._transports.tls_socket import TwoWaySocket

try:
    from websockets.exceptions import ConnectionClosed, InvalidHandshake
    from websockets.sync.client import connect
    from websockets.sync.server import serve
except ModuleNotFoundError as error:
    raise MissingExtraError(
        'websockets is not installed, run `pip install "shoal[remote]"`'
    ) from error

__all__ = ["WebSocketListener", "WebSocketTransport", "open_websocket"]

_PIECE = 1 << 20
"""Bytes of one message: what is said is a stream, and is cut into pieces."""

_OPENING = 3.0
"""Seconds that a client has to ask for a websocket; a server that ends waits for that."""

_SETTINGS: dict[str, Any] = {"compression": None, "max_size": _PIECE, "max_queue": 64}


class WebSocketTransport(ReadingAhead):
    """A connection of the ``websockets`` package as a stream of bytes."""

    def __init__(self, connection: Any, name: str, close: Callable[[], object]) -> None:
        super().__init__()
        self.name = name
        self.is_over = threading.Event()
        self._connection = connection
        self._close = close

    def send(self, parts: Sequence[Any], reads: bool = True) -> None:  # noqa: ARG002
        """Send these buffers as binary messages."""
        stream = memoryview(b"".join(map(flat, parts)))
        try:
            self._limit_sending(self._connection.socket)
            for start in range(0, len(stream), _PIECE):
                self._connection.send(stream[start : start + _PIECE])
        except (ConnectionClosed, OSError) as error:
            raise ConnectionLostError(f"{self.name}: {error}") from error
        self.bytes_sent += len(stream)

    def _limit_sending(self, used: socket.socket) -> None:
        """Let an attempt to send end after a while, but not one to receive."""
        if isinstance(used, TwoWaySocket):
            used.sending_timeout = self.stall_timeout
            return
        seconds, rest = divmod(self.stall_timeout, 1)
        limit = struct.pack("@ll", int(seconds), int(rest * 1e6))
        used.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def _receive(self, timeout: float | None) -> bytes:
        try:
            message = self._connection.recv(timeout)
        except TimeoutError:
            return b""
        except (ConnectionClosed, OSError) as error:
            raise ConnectionLostError(f"{self.name}: {error}") from error
        if isinstance(message, str):
            raise ConnectionLostError(f"{self.name}: a text has come, expected bytes")
        return bytes(message)

    def close(self) -> None:
        """End the connection, for both ends; a second call does nothing."""
        if not self.is_over.is_set():
            self.is_over.set()
            with suppress(OSError):  # the other end was first
                # Without the farewell of websockets: who does not read does not answer it either.
                self._connection.socket.shutdown(socket.SHUT_RDWR)
            self._close()

    def abandon(self) -> None:
        """Let go of it in a forked child, without ending it for the parent."""
        self.is_over.set()
        self._connection.socket.close()


def _for_two(context: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """A context whose sockets two threads may use, as that package does."""
    if context is not None:
        context.sslsocket_class = TwoWaySocket
    return context


def open_websocket(
    address: Address, timeout: float | None, context: ssl.SSLContext | None
) -> Transport:
    """Connect by websocket."""
    place = str(replace(address, name=""))
    try:
        stack = ExitStack()
        opened = connect(
            place, open_timeout=timeout, ssl=_for_two(context), proxy=None, **_SETTINGS
        )
        connection = stack.enter_context(opened)
    except (InvalidHandshake, ConnectionClosed, OSError, EOFError) as error:
        raise ConnectionLostError(f"{address}: {error}") from error
    return WebSocketTransport(connection, place, stack.close)


class WebSocketListener:
    """A websocket server, whose connections become transports."""

    def __init__(
        self,
        address: Address,
        accept: Callable[[Transport], None],
        context: ssl.SSLContext | None,
    ) -> None:
        self._accept = accept
        # Browsers say where a page is from, others do not: no page is to reach a vector.
        self._server = serve(
            self._handle,
            address.host,
            address.port,
            ssl=_for_two(context),
            origins=[None],
            open_timeout=_OPENING,
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
        transport.is_over.wait()  # a session may go on with it after its first thread

    def forget(self) -> None:
        """Let go of it in a forked child, without ending it for the parent."""
        self._server.socket.close()

    def close(self) -> None:
        """Let no more arrive."""
        self._server.shutdown()
        self._thread.join(5.0)
