"""Shared memory for two ends on one machine.

The server listens at a *local upgrade*, a Unix socket that can only be reached on its machine. A
client that connects to it and sends the key of its session receives the descriptor of an anonymous
block of memory. Both ends then continue over two rings in that block, and keep their first socket
open to detect the death of the other end.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal import _native
from shoal.remote._transports.base import Transport

__all__ = [
    "LocalUpgrade",
    "fetch_memory",
    "make_memory",
    "ring_capacity",
    "supports_shared_memory",
    "switch_to_shared_memory",
]

_MIN_CAPACITY, _MAX_CAPACITY = 1 << 18, 1 << 26
_KEY_BYTES = 16
_TIMEOUT = 0.5
"""Seconds for the exchange of a key for a descriptor."""

_SEALS = getattr(fcntl, "F_SEAL_SHRINK", 0) | getattr(fcntl, "F_SEAL_GROW", 0)

Memory = npt.NDArray[np.uint8]


def ring_capacity(message_bytes: int) -> int:
    """Return a ring capacity that holds a message of this size, within limits.

    A larger message passes through the ring in pieces: the reader frees room while the writer
    fills it.
    """
    return min(max(_MIN_CAPACITY, 1 << (message_bytes + 4096).bit_length()), _MAX_CAPACITY)


def make_memory(capacity: int) -> tuple[int, Memory]:
    """Allocate memory for two rings; return its descriptor, owned by the caller, and a mapping."""
    size = _native.Port.shared_bytes(capacity)
    descriptor = os.memfd_create("shoal-rings", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS | fcntl.F_SEAL_SEAL)
        return descriptor, _map(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise


def fetch_memory(local_upgrade: str, key: bytes, capacity: int) -> Memory | None:
    """Receive the memory of the session with this key; None if the server is not local."""
    if sys.platform != "linux" or not 0 < capacity <= _MAX_CAPACITY:
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_TIMEOUT)
            connection.connect("\0" + local_upgrade)
            connection.sendall(key)
            _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        for descriptor in descriptors:
            try:
                return _map(descriptor, _native.Port.shared_bytes(capacity))
            finally:
                os.close(descriptor)
    except (OSError, ValueError):
        return None  # another machine or another container; the socket is used instead
    return None


def switch_to_shared_memory(transport: Transport, memory: Memory, capacity: int, end: int) -> None:
    """Switch a transport to shared memory; ``end`` is 0 for one end and 1 for the other."""
    assert isinstance(transport, _native.Port)
    transport.share(memory, capacity, end)


def _map(descriptor: int, size: int) -> Memory:
    # If the other end could shrink the block, it could kill this process with SIGBUS.
    sealed = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & _SEALS == _SEALS
    if not sealed or os.fstat(descriptor).st_size != size:
        raise ValueError(f"the shared memory is not sealed at {size} bytes")
    return np.frombuffer(mmap.mmap(descriptor, size), np.uint8)


class LocalUpgrade:
    """A Unix socket where local clients receive shared memory.

    Args:
        give: Returns the descriptor of the memory for the session with a key, or None if there is
            no such session. The descriptor is closed after it was sent.
    """

    def __init__(self, give: Callable[[bytes], int | None]) -> None:
        self.name = f"shoal-{secrets.token_hex(12)}"
        self._give = give
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind("\0" + self.name)
        self._socket.listen(64)
        self._thread = threading.Thread(target=self._run, name="shoal local upgrade", daemon=True)
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
            with connection:
                self._respond(connection)

    def _respond(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(_TIMEOUT)
            descriptor = self._give(connection.recv(_KEY_BYTES, socket.MSG_WAITALL))
            if descriptor is None:
                return
            try:
                socket.send_fds(connection, [b"!"], [descriptor])
            finally:
                os.close(descriptor)
        except (OSError, ValueError):
            return  # the client continues over its socket

    def close(self) -> None:
        """Stop accepting connections."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        finally:
            self._socket.close()
            self._thread.join(5.0)


def supports_shared_memory(transport: Any) -> bool:
    """Whether a transport can switch to shared memory."""
    return sys.platform == "linux" and isinstance(transport, _native.Port)
