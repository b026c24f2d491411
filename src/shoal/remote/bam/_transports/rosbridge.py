"""A transport to the GymAPI service of a ROS node, over a rosbridge server."""

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
    """Calls a ROS service through a rosbridge server (protocol version 2).

    The first request connects. After a lost connection, the next request reconnects; the lost
    request is not repeated, because its action may have been executed.

    Args:
        namespace: The namespace of the node; empty for none.
        node_name: The node with the service ``gym_api_request``.
        host_ip: The host of the rosbridge server.
        port: The port of the rosbridge server.
        timeout_sec: Timeout of requests and of connecting in seconds. The request's expected
            duration extends it. A response that arrives later is discarded; whether its action was
            executed is then unknown.

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
        self._name = uuid4().hex  # makes ids unique among the clients of a server
        self._numbers = count(1)
        self._connection: ClientConnection | None = None
        self._connections = ExitStack()  # closes the connection
        self._closed = False

    def step(self, request: GymAPIRequest) -> GymAPIResponse:
        """Call the service, and wait for the response.

        Raises:
            ReceiveTimeoutError: There is no connection or no response in time.
            ConnectionError: The server cannot be reached, or the connection is lost.
            GymAPIError: The server reports that the call failed.
            MessageError: The response is not a valid GymAPI message.
        """
        if self._closed:
            raise ClosedEnvironmentError(f"the transport to {self.address} is closed")
        timeout = self.timeout_sec + request.header.expected_duration
        deadline = time.monotonic() + timeout
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
            response = self._receive(connection, number, deadline)
        except TimeoutError as error:
            raise ReceiveTimeoutError(
                f"{self.address}{self.service} did not respond within {timeout} seconds"
            ) from error
        except (WebSocketException, OSError) as error:
            self._disconnect()
            raise ConnectionError(f"no connection to {self.address}: {error}") from error
        return _response(response, self.service)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._closed = True
        self._disconnect()

    def _connected(self) -> ClientConnection:
        if self._connection is None:
            from websockets.sync.client import connect

            # A plain socket ignores the proxy settings of the environment.
            plain = socket.create_connection((self._host, self._port), self.timeout_sec)
            plain.settimeout(None)  # the connection may be idle between requests
            # No size limit, since the spaces define it; compression of images is slow.
            self._connection = self._connections.enter_context(
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
        self._connections.close()

    def _receive(
        self, connection: ClientConnection, number: str, deadline: float
    ) -> dict[str, Any]:
        while True:
            message = read_json(connection.recv(max(0.0, deadline - time.monotonic())))
            # Skip late responses and broadcasts.
            if isinstance(message, dict) and message.get("id") == number:
                return message


def _response(message: dict[str, Any], service: str) -> GymAPIResponse:
    if message.get("op") == "status":  # an error of rosbridge itself
        raise GymAPIError(f"{service}: {message.get('msg')}")
    if message.get("result") is not True:
        raise GymAPIError(f"{service}: the call failed: {message.get('values')}")
    if "values" not in message:
        raise MessageError(f"{service}: the response has no values")
    return from_dict(message["values"], GymAPIResponse)
