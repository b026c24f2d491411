"""Messages between a pool and the worker processes that it has started, over a socket pair.

Messages are pickled, which is safe between a process and those that it started itself. Both ends
can be full of unread messages at the same time, so the pool never sends without also reading.
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

__all__ = ["Mail", "dumps", "loads"]

_LENGTH = struct.Struct("=Q")
_CHUNK = 1 << 16


class Mail:
    """One end of the way between a pool and a worker.

    ``reads_while_sending`` is for the end that must not wait for a reader while it is to be one.
    Whenever an interrupt comes, nothing is lost that has arrived.
    """

    def __init__(self, end: socket.socket, *, reads_while_sending: bool) -> None:
        self._socket = end
        self._events = select.POLLOUT | (select.POLLIN if reads_while_sending else 0)
        # Letters, and the parts of the stream that follow them; replaced together.
        self._arrived: tuple[deque[bytes], deque[bytes]] = deque(), deque()

    def fileno(self) -> int:
        """The descriptor of the socket."""
        return self._socket.fileno()

    def send(self, letter: bytes, while_waiting: Callable[[], None] | None = None) -> None:
        """Send a message.

        ``while_waiting`` is called now and then as long as there is none.
        """
        data = memoryview(_LENGTH.pack(len(letter)) + letter)
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
                    raise BrokenPipeError("the other end is gone")

    def receive(self, seconds: float | None = None) -> bytes | None:
        """The next message, or None if none comes within the time.

        Raises:
            EOFError: The other end is gone, and all that it had sent has been received.
        """
        letter = self.oldest(seconds)
        if letter is not None:
            self.discard_received()
        return letter

    def oldest(self, seconds: float | None = None) -> bytes | None:
        """The same, but it is there until it is put away."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        self._cut_into_letters()  # what an interrupt may have left whole
        while not self._arrived[0]:
            if not waiting.poll(None if seconds is None else max(0.0, seconds) * 1000):
                return None
            self._read()
        return self._arrived[0][0]

    def discard_received(self) -> None:
        """Forget the oldest message."""
        self._arrived[0].popleft()

    def _read(self) -> None:
        parts = self._arrived[1]
        size = _CHUNK if len(parts) < 2 else 16 * _CHUNK
        # One call, so that what has left the socket is here, whenever an interrupt comes.
        parts.extend(map(self._socket.recv, (size,)))
        if not parts[-1]:
            parts.pop()
            raise EOFError("the other end is gone")
        self._cut_into_letters()

    def _cut_into_letters(self) -> None:
        letters, parts = self._arrived
        if not parts:
            return
        if len(parts[0]) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(parts[0])
            if sum(map(len, parts)) < _LENGTH.size + length:
                return  # large: it is joined once
        data, begin = b"".join(parts), 0
        letters = letters.copy()
        while len(data) >= begin + _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, begin)
            end = begin + _LENGTH.size + length
            if len(data) < end:
                break
            letters.append(data[begin + _LENGTH.size : end])
            begin = end
        self._arrived = letters, deque([data[begin:]] if begin < len(data) else [])

    def send_descriptors(self, descriptors: list[int]) -> None:
        """Hand descriptors over to the other process."""
        socket.send_fds(self._socket, [b"\0"], descriptors)

    def receive_descriptors(self, count: int) -> list[int]:
        """Take over so many descriptors."""
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, count)
        return descriptors

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def dumps(message: Any, *, by_value: bool) -> bytes:
    """Pickle a message.

    Args:
        message: The message; exceptions in it are packed such that they arrive.
        by_value: Whether classes and functions of the main module are sent along, for a process
            whose main module is another one.
    """
    parts = type(message), {**vars(message), **_packed_errors(message)}
    if by_value:
        return bytes(cloudpickle.dumps(parts, protocol=pickle.HIGHEST_PROTOCOL))
    try:
        return pickle.dumps(parts, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:  # perhaps a class that this process knows by value only
        return bytes(cloudpickle.dumps(parts, protocol=pickle.HIGHEST_PROTOCOL))


def loads(letter: bytes) -> Any:
    """A message out of what :func:`dumps` has made of it."""
    kind, attributes = pickle.loads(letter)
    if attributes.get("error") is not None:
        attributes["error"] = unpack_error(attributes["error"])
    if attributes.get("errors"):
        attributes["errors"] = [(slot, unpack_error(one)) for slot, one in attributes["errors"]]
    return kind(**attributes)


def _packed_errors(message: Any) -> dict[str, Any]:
    """Those attributes of a message that hold exceptions, with the exceptions packed."""
    packed: dict[str, Any] = {}
    if getattr(message, "error", None) is not None:
        packed["error"] = pack_error(message.error)
    if getattr(message, "errors", None):
        packed["errors"] = [(slot, pack_error(error)) for slot, error in message.errors]
    return packed
