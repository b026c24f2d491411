"""What remote vectors are measured against: a null environment behind what others would use.

A baseline asks a server in a process of its own to step all slots, and waits for the answer.
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
        """Step all slots; one that sends nothing but bytes gives no outcome."""

    def close(self) -> None:
        """Disconnect, and end the server; a second call does nothing."""


Kind: TypeAlias = Literal["tcp", "unix"]

_FAMILIES = {"tcp": socket.AF_INET, "unix": socket.AF_UNIX}
# The kernel chooses: a free port, or a name that is no file, so nobody has to remove it.
_ANYWHERE: dict[str, Any] = {"tcp": (LOCALHOST, 0), "unix": ""}


class PingPong(Client[socket.socket]):
    """Sends bytes that mean nothing over a bare socket, and receives others: the least there is.

    Args:
        kind: Of the socket.
        request_bytes: How many are sent.
        answer_bytes: How many are received.
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
        """Send and receive once, whatever the actions are."""
        self._connection.sendall(self._request)
        if not _receive(self._connection, self._answer):
            raise ConnectionError("the server is gone")


def _connect_socket(kind: Kind, address: Any) -> socket.socket:
    connection = socket.socket(_FAMILIES[kind])
    connection.connect(address)
    _send_at_once(kind, connection)
    return connection


def _serve_socket(announce: Announce, kind: Kind, request_bytes: int, answer_bytes: int) -> None:
    request, answer = memoryview(bytearray(request_bytes)), bytes(answer_bytes)
    with socket.socket(_FAMILIES[kind]) as listener:
        listener.bind(_ANYWHERE[kind])
        listener.listen()
        announce(listener.getsockname())
        connection, _ = listener.accept()
    with connection:
        _send_at_once(kind, connection)
        while _receive(connection, request):
            connection.sendall(answer)


def _send_at_once(kind: Kind, connection: socket.socket) -> None:
    if kind == "tcp":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _receive(connection: socket.socket, buffer: memoryview) -> bool:
    """Fill a buffer; tells whether the other end was there to do so."""
    received = 0
    while received < len(buffer):
        count = connection.recv_into(buffer[received:])
        if not count:
            return False
        received += count
    return True


_GRPC_SERVICE, _GRPC_METHOD = "benchmarks.Vector", "Step"


class GrpcVector(Client[grpc.Channel]):
    """One unary call of gRPC a step, over TCP."""

    def __init__(self) -> None:
        # A proxy that the user may have is not for this machine.
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
    """A message of websockets each way a step, not compressed, over TCP."""

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
    """JSON in text messages, as GymAPI has it behind rosbridge."""

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
