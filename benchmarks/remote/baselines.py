"""Baselines of remote vectors: a null environment behind sockets, gRPC, websockets and JSON.

A baseline requests steps of all slots from a server in another process and waits for the answer.
"""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import grpc
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from benchmarks.remote.codecs import GYM_API, RAW, Codec
from benchmarks.remote.null import ANSWER_BYTES, REQUEST_BYTES, Actions, Outcome
from benchmarks.remote.serving import LOCALHOST, Announce, Client

__all__ = ["Baseline", "GrpcVector", "GymApiJsonVector", "PingPong", "WebsocketVector"]


class Baseline(Protocol):
    """A client of one server."""

    def step(self, actions: Actions, /) -> Outcome | None:
        """Step all slots; a baseline that sends meaningless bytes returns None."""

    def close(self) -> None:
        """Disconnect and end the server; a second call does nothing."""


Kind: TypeAlias = Literal["tcp", "unix"]

_FAMILIES = {"tcp": socket.AF_INET, "unix": socket.AF_UNIX}
# The operating system chooses a free port, or an abstract name, which needs no cleanup.
_ANY_ADDRESS: dict[str, Any] = {"tcp": (LOCALHOST, 0), "unix": ""}


class PingPong(Client[socket.socket]):
    """Sends meaningless bytes over a plain socket and receives others: the lower bound.

    Args:
        kind: The kind of the socket.
        request_bytes: The size of a request.
        answer_bytes: The size of an answer.
    """

    def __init__(
        self, kind: Kind, request_bytes: int = REQUEST_BYTES, answer_bytes: int = ANSWER_BYTES
    ) -> None:
        super().__init__(
            partial(_connect_socket, kind), _serve_socket, kind, request_bytes, answer_bytes
        )
        self._request = bytes(request_bytes)
        self._answer = memoryview(bytearray(answer_bytes))

    def step(self, _: Actions, /) -> None:
        """Send and receive once; the actions are ignored."""
        self._connection.sendall(self._request)
        if not _receive(self._connection, self._answer):
            raise ConnectionError("the server closed the connection")


def _connect_socket(kind: Kind, address: Any) -> socket.socket:
    connection = socket.socket(_FAMILIES[kind])
    connection.connect(address)
    _disable_delay(kind, connection)
    return connection


def _serve_socket(announce: Announce, kind: Kind, request_bytes: int, answer_bytes: int) -> None:
    request, answer = memoryview(bytearray(request_bytes)), bytes(answer_bytes)
    with socket.socket(_FAMILIES[kind]) as listener:
        listener.bind(_ANY_ADDRESS[kind])
        listener.listen()
        announce(listener.getsockname())
        connection, _ = listener.accept()
    with connection:
        _disable_delay(kind, connection)
        while _receive(connection, request):
            connection.sendall(answer)


def _disable_delay(kind: Kind, connection: socket.socket) -> None:
    if kind == "tcp":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _receive(connection: socket.socket, buffer: memoryview) -> bool:
    """Fill a buffer and return whether the other end sent enough."""
    received = 0
    while received < len(buffer):
        count = connection.recv_into(buffer[received:])
        if not count:
            return False
        received += count
    return True


_GRPC_SERVICE, _GRPC_METHOD = "benchmarks.Vector", "Step"


class GrpcVector(Client[grpc.Channel]):
    """One unary gRPC call per step, over TCP."""

    def __init__(self) -> None:
        # A proxy of the user must not be used for this machine.
        options = [("grpc.enable_http_proxy", 0)]
        super().__init__(partial(grpc.insecure_channel, options=options), _serve_grpc, RAW)
        self._call = self._connection.unary_unary(f"/{_GRPC_SERVICE}/{_GRPC_METHOD}")

    def step(self, actions: Actions, /) -> Outcome:
        """Step all slots."""
        return RAW.outcome(self._call(RAW.request(actions)))


def _serve_grpc(announce: Announce, codec: Codec) -> None:
    step = grpc.unary_unary_rpc_method_handler(lambda request, _: codec.answer(request))
    service = grpc.method_handlers_generic_handler(_GRPC_SERVICE, {_GRPC_METHOD: step})
    server = grpc.server(ThreadPoolExecutor(1), handlers=[service])
    port = server.add_insecure_port(f"{LOCALHOST}:0")
    server.start()
    announce(f"{LOCALHOST}:{port}")
    server.wait_for_termination()


class _OverWebsockets(Client[ClientConnection]):
    """One websocket message in each direction per step, uncompressed, over TCP."""

    def __init__(self, codec: Codec) -> None:
        super().__init__(_connect_websocket, _serve_websockets, codec)
        self._codec = codec

    def step(self, actions: Actions, /) -> Outcome:
        """Step all slots."""
        self._connection.send(self._codec.request(actions))
        return self._codec.outcome(self._connection.recv())


class WebsocketVector(_OverWebsockets):
    """Raw arrays in binary messages."""

    def __init__(self) -> None:
        super().__init__(RAW)


class GymApiJsonVector(_OverWebsockets):
    """JSON in text messages, in the format of GymAPI behind rosbridge."""

    def __init__(self) -> None:
        super().__init__(GYM_API)


def _connect_websocket(port: int) -> ClientConnection:
    return connect(f"ws://{LOCALHOST}:{port}", compression=None, proxy=None)


def _serve_websockets(announce: Announce, codec: Codec) -> None:
    def answer(connection: ServerConnection) -> None:
        for message in connection:
            connection.send(codec.answer(message))

    with serve(answer, LOCALHOST, 0, compression=None) as server:
        announce(server.socket.getsockname()[1])
        server.serve_forever()
