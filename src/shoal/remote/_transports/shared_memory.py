"""Shared memory for two ends on one machine: how they come to have the same, and go over to it.

The server listens at a *local upgrade*, a name known only on its machine. A client that reaches
it there and says the secret of its session is handed a block of memory without a name; both then go
on over two rings in it, and keep their socket to notice each other's end.
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
    "go_over",
    "is_shareable",
    "make_memory",
    "ring_capacity",
]

_SMALLEST, _LARGEST = 1 << 18, 1 << 26

_KEY_BYTES = 16
_PATIENCE = 0.5
"""Seconds to hand over what lies ready."""


_SEALS = getattr(fcntl, "F_SEAL_SHRINK", 0) | getattr(fcntl, "F_SEAL_GROW", 0)

Memory = npt.NDArray[np.uint8]


def ring_capacity(message: int) -> int:
    """Bytes of a ring that takes messages of this size at once, up to a limit."""
    return min(max(_SMALLEST, 1 << (message + 4096).bit_length()), _LARGEST)


def make_memory(capacity: int) -> tuple[int, Memory]:
    """Allocate memory for two rings; return its descriptor, owned by the caller, and a mapping."""
    size = _native.Port.shared_bytes(capacity)
    descriptor = os.memfd_create("shoal-rings", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS | fcntl.F_SEAL_SEAL)
        return descriptor, _mapped(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise


def fetch_memory(frontend: str, key: bytes, capacity: int) -> Memory | None:
    """The block that the server has for the session of this key; None where it is not reached."""
    if sys.platform != "linux":
        return None
    if not 0 < capacity <= _LARGEST:
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
            knocking.settimeout(_PATIENCE)
            knocking.connect("\0" + frontend)
            knocking.sendall(key)
            _, descriptors, _, _ = socket.recv_fds(knocking, 1, 1)
        for descriptor in descriptors:
            try:
                return _mapped(descriptor, _native.Port.shared_bytes(capacity))
            finally:
                os.close(descriptor)
    except (OSError, ValueError):
        return None  # it is another machine, or another container on it: the socket does as well
    return None


def go_over(transport: Transport, memory: Memory, capacity: int, end: int) -> None:
    """Let a transport go on over shared memory; its two ends have the numbers 0 and 1."""
    assert isinstance(transport, _native.Port)
    transport.share(memory, capacity, end)


def _mapped(descriptor: int, size: int) -> Memory:
    # Whoever could make it smaller could end us by it.
    sealed = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & _SEALS == _SEALS
    if not sealed or os.fstat(descriptor).st_size != size:
        raise ValueError(f"the shared block has not {size} bytes for good")
    return np.frombuffer(mmap.mmap(descriptor, size), np.uint8)


class LocalUpgrade:
    """Where clients of this machine are handed memory.

    Args:
        give: Returns the descriptor of a block for the session of this key, which is then closed;
            None if there is no such session.
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
                visitor, _ = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
                time.sleep(0.05)  # no descriptors left, perhaps; they come back
                continue
            with visitor:
                self._answer(visitor)

    def _answer(self, visitor: socket.socket) -> None:
        try:
            visitor.settimeout(_PATIENCE)
            descriptor = self._give(visitor.recv(_KEY_BYTES, socket.MSG_WAITALL))
            if descriptor is None:
                return
            try:
                socket.send_fds(visitor, [b"!"], [descriptor])
            finally:
                os.close(descriptor)
        except (OSError, ValueError):
            return  # it gets nothing, and goes on over its socket

    def close(self) -> None:
        """Let nobody in any more."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        finally:
            self._socket.close()
            self._thread.join(5.0)


def is_shareable(transport: Any) -> bool:
    """Whether a transport can go over to shared memory."""
    return sys.platform == "linux" and isinstance(transport, _native.Port)
