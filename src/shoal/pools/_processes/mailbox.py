"""Messages between a pool and its worker processes, over a socket pair.

Messages are pickled, which is safe between a process and its children. The buffers of both
directions can be full at the same time, so the pool also reads while it sends.
"""

from __future__ import annotations

import pickle
import select
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

import cloudpickle

from shoal.pools._processes.error_packing import pack_error, unpack_error

__all__ = ["MessageSocket", "dumps", "loads"]

_LENGTH = struct.Struct("=Q")
_CHUNK = 1 << 16


class MessageSocket:
    """One end of the connection between a pool and a worker.

    An interrupt at any time does not lose received data.

    Args:
        end: The socket.
        reads_while_sending: Whether :meth:`send` also reads, so that both ends can send at the same
            time without a deadlock.
    """

    def __init__(self, end: socket.socket, *, reads_while_sending: bool) -> None:
        self._socket = end
        self._events = select.POLLOUT | (select.POLLIN if reads_while_sending else 0)
        # Whole messages, and the parts of the stream after them; both are replaced at once.
        self._received: tuple[deque[bytes], deque[bytes]] = deque(), deque()

    def fileno(self) -> int:
        """The descriptor of the socket."""
        return self._socket.fileno()

    def send(self, message: bytes, while_waiting: Callable[[], None] | None = None) -> None:
        """Send a message.

        ``while_waiting`` is called about every 10 ms while the other end does not read.
        """
        data = memoryview(_LENGTH.pack(len(message)) + message)
        waiting = select.poll()
        waiting.register(self._socket, self._events)
        while data:
            events = waiting.poll(10)
            if not events and while_waiting is not None:
                while_waiting()
            for _, event in events:
                if event & select.POLLIN:
                    self._read()
                if event & select.POLLOUT:
                    data = data[self._socket.send(data, socket.MSG_DONTWAIT) :]
                elif event & (select.POLLHUP | select.POLLERR) and not event & select.POLLIN:
                    raise BrokenPipeError("the other end is closed")

    def receive(self, seconds: float | None = None) -> bytes | None:
        """Return the next message, or None if none arrives in time.

        Raises:
            EOFError: The other end is closed, and all its messages have been received.
        """
        message = self.peek(seconds)
        if message is not None:
            self.discard_received()
        return message

    def peek(self, seconds: float | None = None) -> bytes | None:
        """Return the next message and keep it until :meth:`discard_received`."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        self._split_messages()  # an interrupt may have come before it
        while not self._received[0]:
            if not waiting.poll(None if seconds is None else max(0.0, seconds) * 1000):
                return None
            self._read()
        return self._received[0][0]

    def discard_received(self) -> None:
        """Discard the oldest message."""
        self._received[0].popleft()

    def _read(self) -> None:
        parts = self._received[1]
        size = _CHUNK if len(parts) < 2 else 16 * _CHUNK
        # One C call, so that an interrupt cannot lose data that was read from the socket.
        parts.extend(map(self._socket.recv, (size,)))
        if not parts[-1]:
            parts.pop()
            raise EOFError("the other end is closed")
        self._split_messages()

    def _split_messages(self) -> None:
        messages, parts = self._received
        if not parts:
            return
        if len(parts[0]) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(parts[0])
            if sum(map(len, parts)) < _LENGTH.size + length:
                return  # a large message is joined once, when it is complete
        data, begin = b"".join(parts), 0
        messages = messages.copy()
        while len(data) >= begin + _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, begin)
            end = begin + _LENGTH.size + length
            if len(data) < end:
                break
            messages.append(data[begin + _LENGTH.size : end])
            begin = end
        self._received = messages, deque([data[begin:]] if begin < len(data) else [])

    def send_descriptors(self, descriptors: list[int]) -> None:
        """Send file descriptors to the other process."""
        socket.send_fds(self._socket, [b"\0"], descriptors)

    def receive_descriptors(self, count: int) -> list[int]:
        """Receive at most ``count`` file descriptors."""
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, count)
        return descriptors

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def dumps(message: Any, *, by_value: bool) -> bytes:
    """Pickle a message.

    Args:
        message: The message; its exceptions are packed with :func:`pack_error`.
        by_value: Whether to pickle classes and functions of the main module by value, for a process
            with another main module.
    """
    parts = type(message), {**vars(message), **_packed_errors(message)}
    if by_value:
        return bytes(cloudpickle.dumps(parts, protocol=pickle.HIGHEST_PROTOCOL))
    try:
        return pickle.dumps(parts, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:  # possibly a class that this process has received by value
        return bytes(cloudpickle.dumps(parts, protocol=pickle.HIGHEST_PROTOCOL))


def loads(pickled: bytes) -> Any:
    """Unpickle a message of :func:`dumps`."""
    kind, attributes = pickle.loads(pickled)
    if attributes.get("error") is not None:
        attributes["error"] = unpack_error(attributes["error"])
    if attributes.get("errors"):
        attributes["errors"] = [(slot, unpack_error(error)) for slot, error in attributes["errors"]]
    return kind(**attributes)


def _packed_errors(message: Any) -> dict[str, Any]:
    """Return the attributes of a message that hold exceptions, with the exceptions packed."""
    packed: dict[str, Any] = {}
    if getattr(message, "error", None) is not None:
        packed["error"] = pack_error(message.error)
    if getattr(message, "errors", None):
        packed["errors"] = [(slot, pack_error(error)) for slot, error in message.errors]
    return packed
