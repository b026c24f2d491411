"""What a client needs of a transport."""

from __future__ import annotations

from typing import Protocol

from shoal.remote.bam._messages import GymAPIRequest, GymAPIResponse

__all__ = ["GenericTransport"]


class GenericTransport(Protocol):
    """Takes requests to whoever answers them, one at a time.

    That the other side failed is told by the header of its response. A transport raises where there
    is no response: :class:`shoal.errors.ReceiveTimeoutError` if it did not come in time, to which
    the header's ``expected_duration`` adds. Each client has a transport of its own.
    """

    def step(self, request: GymAPIRequest) -> GymAPIResponse:
        """Hand over a request of any type, and wait for its response."""

    def close(self) -> None:
        """Give back what the transport holds; a second call does nothing."""
