"""A proxy that can cut connections at message boundaries and change messages."""

import random
import socket
import struct
import threading
from contextlib import contextmanager, suppress

from msgspec import msgpack

from shoal.remote._wire import HEADER_BYTES, Kind, pack_header, read_header

REQUEST, RESPONSE = "request", "response"

POINTS = {
    "before the request is forwarded": (REQUEST, "before"),
    "in the middle of the request": (REQUEST, "half"),
    "after the request was forwarded": (REQUEST, "after"),
    "after it was executed, before the response is forwarded": (RESPONSE, "before"),
    "in the middle of the response": (RESPONSE, "half"),
    "after the response was forwarded": (RESPONSE, "after"),
}
"""Where to cut a connection: the direction, and how much of the message to forward."""


class Proxy:
    """Forwards connections to a port, message by message.

    ``decide(direction, header)`` is called for each numbered message of a session. It returns None,
    or how much to forward before both connections are closed: "before", "half" or "after".
    """

    def __init__(self, port, decide=lambda direction, header: None):
        self.port = port
        self.decide = decide
        self.drops = set()  # kinds of messages that are not forwarded
        self.cuts = 0
        self.connections = 0
        self._pairs = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self):
        return f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.port), 5.0)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            pair = (client, server)
            for each in pair:
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self._pairs.append(pair)
            for source, target, direction in (
                (client, server, REQUEST),
                (server, client, RESPONSE),
            ):
                thread = threading.Thread(
                    target=self._forward, args=(source, target, direction, pair), daemon=True
                )
                self._threads.append(thread)
                thread.start()

    def _forward(self, source, target, direction, pair):
        try:
            while True:
                head = _receive_exactly(source, HEADER_BYTES)
                header = read_header(head)
                message = head + _receive_exactly(source, header.meta + header.body)
                if header.kind in self.drops:
                    continue
                message = self.rewrite(direction, header, message)
                with self._lock:
                    how = self.decide(direction, header) if header.number else None
                    self.cuts += how is not None
                part = {None: len(message), "before": 0, "half": len(message) // 2}
                target.sendall(message[: part.get(how, len(message))])
                if how is not None:
                    raise EOFError
        except (OSError, EOFError):
            _disconnect(pair)

    def rewrite(self, direction, header, message):
        """Return the message to forward instead of this one."""
        return message

    def cut(self):
        """Close all connections immediately."""
        for pair in self._pairs:
            _disconnect(pair)

    def close(self):
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(5.0)


@contextmanager
def proxied(url, decide=lambda direction, header: None):
    """Start a proxy for ``tcp://host:port/name``; yield it and the URL to use instead."""
    place, _, name = url.rpartition("/")
    proxy = Proxy(int(place.rpartition(":")[2]), decide)
    try:
        yield proxy, f"{proxy.url}/{name}"
    finally:
        proxy.close()


class RewritingProxy(Proxy):
    """Changes fields in messages of some kinds, and records the original messages."""

    def __init__(self, port, changes):
        super().__init__(port)
        self._changes = changes
        self.original = {}

    def rewrite(self, direction, header, message):
        if header.kind not in self._changes:
            return message
        self.original[header.kind] = message
        fields = msgpack.decode(message[HEADER_BYTES:]) | self._changes[header.kind]
        meta = msgpack.encode(fields)
        return pack_header(header._replace(meta=len(meta))) + meta


@contextmanager
def rewriting(url, changes):
    """As ``proxied``, with changes of fields by kind of message."""
    place, _, name = url.rpartition("/")
    proxy = RewritingProxy(int(place.rpartition(":")[2]), changes)
    try:
        yield proxy, f"{proxy.url}/{name}"
    finally:
        proxy.close()


def cut_at(point, numbers):
    """Cut once at each of these requests."""
    direction, how = POINTS[point]
    remaining = set(numbers)

    def decide(where, header):
        number = header.number if where == REQUEST else header.reply_to
        if where != direction or header.kind is Kind.EXPECTED_DURATION or number not in remaining:
            return None
        remaining.discard(number)
        return how

    return decide


def cut_at_random(seed, probability):
    """Cut at random messages, in random ways."""
    rng = random.Random(seed)

    def decide(where, header):
        if header.kind is Kind.CLOSE or rng.random() >= probability:
            return None
        return rng.choice(["before", "half", "after"])

    return decide


def _receive_exactly(source, size):
    parts = bytearray()
    while len(parts) < size:
        data = source.recv(min(1 << 20, size - len(parts)))
        if not data:
            raise EOFError
        parts += data
    return bytes(parts)


def _disconnect(pair):
    for each in pair:
        with suppress(OSError):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            each.close()
