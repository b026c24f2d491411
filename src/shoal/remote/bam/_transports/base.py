"""The interface of a transport."""

from __future__ import annotations

from typing import Protocol

from shoal.remote.bam._messages import GymAPIRequest, GymAPIResponse

__all__ = ["GenericTransport"]


class GenericTransport(Protocol):
    """Sends requests to a server, one at a time.

    A failure of the server is reported in the header of the response. Without a response, the
    transport raises an error, which is a :class:`shoal.errors.ReceiveTimeoutError` after a timeout.
    The request's ``expected_duration`` extends the timeout. Each client has its own transport.
    """

    def step(self, request: GymAPIRequest) -> GymAPIResponse:
        """Send a request of any type, and wait for the response."""

    def close(self) -> None:
        """Close the transport; a second call does nothing."""
