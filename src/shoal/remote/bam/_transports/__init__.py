"""Transports of GymAPI requests."""

from shoal.remote.bam._transports.base import GenericTransport
from shoal.remote.bam._transports.mock import MockTransport
from shoal.remote.bam._transports.rosbridge import RosbridgeTransport

__all__ = ["GenericTransport", "MockTransport", "RosbridgeTransport"]
