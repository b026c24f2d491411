"""The GymAPI service of a ROS node, called over the websocket of a rosbridge server."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from gymnasium.error import ClosedEnvironmentError

from shoal.errors import MissingExtraError, ReceiveTimeoutError
from shoal.remote.bam._messages import (
    GymAPIError,
    GymAPIRequest,
    GymAPIResponse,
    MessageError,
    from_dict,
    read_json,
    to_dict,
    write_json,
)

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

__all__ = ["RosbridgeTransport"]


class RosbridgeTransport:
    """Calls a ROS service through rosbridge, version 2 of its protocol.

    The connection is made by the first request. A connection that was lost is made again by the
    next one; the request under way is not repeated, since its action may have been executed.

    Args:
        namespace: The namespace of the node, empty for none.
        node_name: The node that has the service ``gym_api_request``.
        host_ip: Where the rosbridge server is.
        port: Its port.
        timeout_sec: Seconds until a request, or the connection, is given up; a request that says
            how long it will probably take has that much longer. An answer that comes later is
            thrown away: whether its action was executed is then not known.

    Raises:
        MissingExtraError: The package ``websockets`` is not installed.
    """

    def __init__(
        self,
        namespace: str = "",
        node_name: str = "gym_env",
        host_ip: str = "localhost",
        port: int = 9090,
        timeout_sec: float = 5,
    ) -> None:
        try:
            import websockets.sync.client  # noqa: F401
        except ImportError as error:
            raise MissingExtraError(
                "rosbridge needs the package websockets, which is not installed: "
                'pip install "shoal[remote]"'
            ) from error
        names = [part for name in (namespace, node_name) for part in name.split("/") if part]
        self.service = "/".join(["", *names, "gym_api_request"])
        self.address = f"ws://{f'[{host_ip}]' if ':' in host_ip else host_ip}:{port}"
        self.timeout_sec = timeout_sec
        self._host, self._port = host_ip, port
        self._name = uuid4().hex  # ids differ between clients of one server, too
        self._numbers = count(1)
        self._connection: ClientConnection | None = None
        self._held = ExitStack()  # websockets wants its connections in a "with"
        self._closed = False

    def step(self, request: GymAPIRequest) -> GymAPIResponse:
        """Call the service, and wait for its answer.

        Raises:
            ReceiveTimeoutError: There was no connection or no answer in time.
            ConnectionError: The server cannot be reached, or has gone away.
            GymAPIError: The server says that the call has failed.
            MessageError: The answer is not of the GymAPI.
        """
        if self._closed:
            raise ClosedEnvironmentError(f"the transport to {self.address} is closed")
        patience = self.timeout_sec + request.header.expected_duration
        deadline = time.monotonic() + patience
        number = f"call_service:{self.service}:{self._name}:{next(self._numbers)}"
        call = {
            "op": "call_service",
            "id": number,
            "service": self.service,
            "type": "bam_msgs/GymAPI",
            "args": to_dict(request),
        }
        from websockets.exceptions import WebSocketException

        try:
            connection = self._connected()
            connection.send(write_json(call).decode())
            answer = self._answer(connection, number, deadline)
        except TimeoutError as error:
            raise ReceiveTimeoutError(
                f"{self.address}{self.service} did not answer within {patience} seconds"
            ) from error
        except (WebSocketException, OSError) as error:
            self._disconnect()
            raise ConnectionError(f"no connection to {self.address}: {error}") from error
        return _response(answer, self.service)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._closed = True
        self._disconnect()

    def _connected(self) -> ClientConnection:
        if self._connection is None:
            from websockets.sync.client import connect

            # A socket of our own: a proxy that is set for the web does not lead to a robot.
            plain = socket.create_connection((self._host, self._port), self.timeout_sec)
            plain.settimeout(None)  # it may be idle between requests
            # How large a message may be is the affair of the spaces; pixels deflate badly, slowly.
            self._connection = self._held.enter_context(
                connect(
                    self.address,
                    sock=plain,
                    open_timeout=self.timeout_sec,
                    close_timeout=self.timeout_sec,
                    max_size=None,
                    compression=None,
                )
            )
        return self._connection

    def _disconnect(self) -> None:
        self._connection = None
        self._held.close()

    def _answer(self, connection: ClientConnection, number: str, deadline: float) -> dict[str, Any]:
        while True:
            message = read_json(connection.recv(max(0.0, deadline - time.monotonic())))
            # Answers to calls that were given up, and what the server says to everybody.
            if isinstance(message, dict) and message.get("id") == number:
                return message


def _response(answer: dict[str, Any], service: str) -> GymAPIResponse:
    if answer.get("op") == "status":  # rosbridge's own: it could not make sense of the call
        raise GymAPIError(f"{service}: {answer.get('msg')}")
    if answer.get("result") is not True:
        raise GymAPIError(f"{service}: the call has failed: {answer.get('values')}")
    if "values" not in answer:
        raise MessageError(f"{service}: the answer has no values")
    return from_dict(answer["values"], GymAPIResponse)
