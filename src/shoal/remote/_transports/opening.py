"""Connect to an address, or listen at one."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from shoal.errors import ConnectionLostError
from shoal.remote._address import Address
from shoal.remote._transports.base import Transport
from shoal.remote._transports.security import TLS, client_context, server_context
from shoal.remote._transports.sockets import configure_tcp, socket_transport

__all__ = ["Listener", "listen", "open_transport"]

Accept = Callable[[Transport], None]
"""A function that handles a new connection; called in a separate thread."""

_BACKLOG = 256
_MAX_HANDSHAKES = 64
"""TLS handshakes in progress at once; more connections are closed."""

_HANDSHAKE_TIMEOUT = 10.0
"""Seconds for a TLS handshake."""

_inproc: dict[str, Accept] = {}


class Listener(Protocol):
    """An address that accepts connections."""

    address: Address

    def close(self) -> None:
        """Stop accepting connections."""

    def release_in_child(self) -> None:
        """Release it in a forked child without closing the listener of the parent."""


def open_transport(
    address: Address, timeout: float | None, tls: TLS | str | Path | None = None
) -> Transport:
    """Connect to an address.

    Raises:
        ConnectionLostError: There is no server, or its certificate is not trusted.
        FileNotFoundError: A file that ``tls`` names does not exist.
    """
    context = client_context(tls) if address.is_encrypted else None
    try:
        if address.scheme == "inproc":
            return _connect_in_process(address)
        if address.scheme in ("ws", "wss"):
            from shoal.remote._transports.websocket import open_websocket

            return open_websocket(address, timeout, context)
        if address.scheme == "unix":
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.settimeout(timeout)
                connection.connect(_unix_path(address.path))
            except BaseException:
                connection.close()
                raise
        else:
            connection = configure_tcp(
                socket.create_connection((address.host, address.port), timeout)
            )
        if context is not None:
            connection = context.wrap_socket(connection, server_hostname=address.host)
    except ConnectionLostError:
        raise
    except (OSError, ssl.SSLError) as error:
        raise ConnectionLostError(f"{address}: {error}") from error
    return socket_transport(connection, str(replace(address, name="")))


def listen(address: Address, accept: Accept, tls: TLS | None = None) -> Listener:
    """Listen at an address; ``accept`` is called for each connection in a separate thread."""
    if address.scheme == "inproc":
        return _InProcessListener(address, accept)
    if address.scheme in ("ws", "wss"):
        from shoal.remote._transports.websocket import WebSocketListener

        return WebSocketListener(address, accept, None if tls is None else server_context(tls))
    return _SocketListener(address, accept, None if tls is None else server_context(tls))


class _SocketListener:
    """A listening socket with a thread that accepts connections."""

    def __init__(self, address: Address, accept: Accept, context: ssl.SSLContext | None) -> None:
        if address.scheme == "unix":
            _remove_stale(address.path)
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self._socket.bind(_unix_path(address.path))
            except OSError as error:
                self._socket.close()
                error.filename = address.path
                raise
            self._socket.listen(_BACKLOG)
            self.address = address
            self._file = _file_id(address.path)
        else:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            self._socket = socket.create_server(
                (address.host, address.port), family=family, backlog=_BACKLOG
            )
            self.address = replace(address, port=self._socket.getsockname()[1])
        self._accept = accept
        self._context = context
        self._handshakes = threading.Semaphore(_MAX_HANDSHAKES)
        self._thread = threading.Thread(
            target=self._run, name=f"shoal at {self.address}", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
                time.sleep(0.05)  # the process may have run out of descriptors
                continue
            if not self._handshakes.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(
                target=self._begin, args=(connection,), name="shoal session", daemon=True
            ).start()

    def _begin(self, connection: socket.socket) -> None:
        try:
            configure_tcp(connection)
            try:
                if self._context is not None:
                    connection.settimeout(_HANDSHAKE_TIMEOUT)
                    connection = self._context.wrap_socket(connection, server_side=True)
            finally:
                self._handshakes.release()
            transport = socket_transport(connection, f"a client of {self.address}")
        except OSError:
            connection.close()
            return
        self._accept(transport)

    def release_in_child(self) -> None:
        """Release it in a forked child without closing the listener of the parent."""
        self._socket.close()

    def close(self) -> None:
        """Stop accepting connections."""
        with contextlib.suppress(OSError):  # some systems cannot shut down a listening socket
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._socket.close()
        self._thread.join(5.0)
        if self.address.scheme == "unix" and _file_id(self.address.path) == self._file is not None:
            Path(self.address.path).unlink(missing_ok=True)


class _InProcessListener:
    """A name that is known within this process."""

    def __init__(self, address: Address, accept: Accept) -> None:
        self.address = address
        if _inproc.setdefault(address.path, accept) is not accept:
            raise OSError(f"{address} is in use")

    def release_in_child(self) -> None:
        """Release it in a forked child without closing the listener of the parent."""
        self.close()

    def close(self) -> None:
        """Stop accepting connections."""
        _inproc.pop(self.address.path, None)


def _connect_in_process(address: Address) -> Transport:
    accept = _inproc.get(address.path)
    if accept is None:
        raise ConnectionRefusedError("no server in this process listens at this name")
    client, server = socket.socketpair()
    transport = socket_transport(server, f"a client of {address}")
    threading.Thread(target=accept, args=(transport,), name="shoal session", daemon=True).start()
    return socket_transport(client, str(replace(address, name="")))


def _unix_path(path: str) -> str:
    """Convert a path that starts with ``@`` to a name in Linux's abstract namespace."""
    return "\0" + path[1:] if path.startswith("@") else path


def _file_id(path: str) -> tuple[int, int] | None:
    """Identify the file at a path: another server may have replaced the socket."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _remove_stale(path: str) -> None:
    """Remove the socket of a server that no longer runs."""
    if path.startswith("@") or not os.path.exists(path):
        return
    if not stat.S_ISSOCK(os.stat(path).st_mode):
        raise FileExistsError(f"{path} exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
