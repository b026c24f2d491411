"""Opening transports: connecting to an address, and listening at one."""

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
from shoal.remote._transports.sockets import socket_transport, tuned

__all__ = ["Listener", "listen", "open_transport"]

Accept = Callable[[Transport], None]
"""What becomes of a new connection; called in a thread of its own."""

_BACKLOG = 256
_MOST_STRANGERS = 64
_HANDSHAKE = 10.0
"""Seconds for that of TLS."""

_inproc: dict[str, Accept] = {}


class Listener(Protocol):
    """A place where connections arrive."""

    address: Address

    def close(self) -> None:
        """Let no more arrive."""

    def forget(self) -> None:
        """Let go of it in a forked child, without ending it for the parent."""


def open_transport(
    address: Address, timeout: float | None, tls: TLS | str | Path | None = None
) -> Transport:
    """Connect.

    Raises:
        ConnectionLostError: There is nobody, or nobody who can be trusted.
        FileNotFoundError: There is no such file as ``tls`` names.
    """
    context = client_context(tls) if address.is_encrypted else None
    try:
        if address.scheme == "inproc":
            return _within_process(address)
        if address.scheme in ("ws", "wss"):
            from shoal.remote._transports.websocket import open_websocket

            return open_websocket(address, timeout, context)
        if address.scheme == "unix":
            connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connected.settimeout(timeout)
                connected.connect(_unix_path(address.path))
            except BaseException:
                connected.close()
                raise
        else:
            connected = tuned(socket.create_connection((address.host, address.port), timeout))
        if context is not None:
            connected = context.wrap_socket(connected, server_hostname=address.host)
    except ConnectionLostError:
        raise
    except (OSError, ssl.SSLError) as error:
        raise ConnectionLostError(f"{address}: {error}") from error
    return socket_transport(connected, str(replace(address, name="")))


def listen(address: Address, accept: Accept, tls: TLS | None = None) -> Listener:
    """Listen at an address; ``accept`` is called for each connection, in a thread of its own."""
    if address.scheme == "inproc":
        return _InProcess(address, accept)
    if address.scheme in ("ws", "wss"):
        from shoal.remote._transports.websocket import WebSocketListener

        return WebSocketListener(address, accept, None if tls is None else server_context(tls))
    return _SocketListener(address, accept, None if tls is None else server_context(tls))


class _SocketListener:
    """A listening socket, and the thread that accepts."""

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
            self._file = _file_of(address.path)
        else:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            self._socket = socket.create_server(
                (address.host, address.port), family=family, backlog=_BACKLOG
            )
            self.address = replace(address, port=self._socket.getsockname()[1])
        self._accept = accept
        self._context = context
        self._strangers = threading.Semaphore(_MOST_STRANGERS)  # in the handshake of TLS
        self._thread = threading.Thread(
            target=self._run, name=f"shoal at {self.address}", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connected, _ = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
                time.sleep(0.05)  # no descriptors left, perhaps; they come back
                continue
            if not self._strangers.acquire(blocking=False):
                connected.close()
                continue
            threading.Thread(
                target=self._begin, args=(connected,), name="shoal session", daemon=True
            ).start()

    def _begin(self, connected: socket.socket) -> None:
        try:
            tuned(connected)
            try:
                if self._context is not None:
                    connected.settimeout(_HANDSHAKE)
                    connected = self._context.wrap_socket(connected, server_side=True)
            finally:
                self._strangers.release()
            transport = socket_transport(connected, f"a client of {self.address}")
        except OSError:
            connected.close()  # it has not even introduced itself
            return
        self._accept(transport)

    def forget(self) -> None:
        """Let go of it in a forked child, without ending it for the parent."""
        self._socket.close()

    def close(self) -> None:
        """Let no more arrive."""
        with contextlib.suppress(OSError):  # not all systems let a listening socket be shut down
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._socket.close()
        self._thread.join(5.0)
        if self.address.scheme == "unix" and _file_of(self.address.path) == self._file is not None:
            Path(self.address.path).unlink(missing_ok=True)


class _InProcess:
    """A name within this process."""

    def __init__(self, address: Address, accept: Accept) -> None:
        self.address = address
        if _inproc.setdefault(address.path, accept) is not accept:
            raise OSError(f"{address} is in use")

    def forget(self) -> None:
        """Let go of it in a forked child, without ending it for the parent."""
        self.close()

    def close(self) -> None:
        """Let no more arrive."""
        _inproc.pop(self.address.path, None)


def _within_process(address: Address) -> Transport:
    accept = _inproc.get(address.path)
    if accept is None:
        raise ConnectionRefusedError("nobody listens there in this process")
    ours, theirs = socket.socketpair()
    transport = socket_transport(theirs, f"a client of {address}")
    threading.Thread(target=accept, args=(transport,), name="shoal session", daemon=True).start()
    return socket_transport(ours, str(replace(address, name="")))


def _unix_path(path: str) -> str:
    """A path; one that begins with ``@`` is a name without a file, which Linux has."""
    return "\0" + path[1:] if path.startswith("@") else path


def _file_of(path: str) -> tuple[int, int] | None:
    """Which file a path leads to: that of another server may have taken the place of ours."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _remove_stale(path: str) -> None:
    """Remove the socket of a server that is gone; leave everything else alone."""
    if path.startswith("@") or not os.path.exists(path):
        return
    if not stat.S_ISSOCK(os.stat(path).st_mode):
        raise FileExistsError(f"{path} exists, and is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
