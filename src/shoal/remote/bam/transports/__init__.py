"""How GymAPI requests get to whoever answers them."""

from shoal.remote.bam.transports.base import GenericTransport
from shoal.remote.bam.transports.mock import MockTransport
from shoal.remote.bam.transports.rosbridge import RosbridgeTransport

__all__ = ["GenericTransport", "MockTransport", "RosbridgeTransport"]
