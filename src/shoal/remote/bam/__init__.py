"""Vectors over the GymAPI of BAM's robots: a client asks for all of its slots at once.

All of it is imported from here: what is ``bam_gym.envs.make_bam_vec_env``,
``bam_gym.envs.clients.mock_env.MockEnv`` and ``bam_gym.transport.MockTransport`` elsewhere is
``make_bam_vec_env``, ``MockEnv`` and ``MockTransport`` of this module. Messages become JSON and
come back by ``to_json`` and ``from_json``.
"""

from shoal.remote.bam._client import Durations, GenericGymClient
from shoal.remote.bam._encoding import ActionCodec, ObservationCodec
from shoal.remote.bam._messages import (
    ErrorCode,
    ErrorType,
    GymAction,
    GymAPIError,
    GymAPIRequest,
    GymAPIResponse,
    GymFeedback,
    MessageError,
    RequestHeader,
    RequestType,
    ResponseHeader,
    from_json,
    to_json,
)
from shoal.remote.bam._mock_env import MockEnv
from shoal.remote.bam._transports import GenericTransport, MockTransport, RosbridgeTransport
from shoal.remote.bam._vector import BamVectorEnv, make_bam_vec_env

__all__ = [
    "ActionCodec",
    "BamVectorEnv",
    "Durations",
    "ErrorCode",
    "ErrorType",
    "GenericGymClient",
    "GenericTransport",
    "GymAPIError",
    "GymAPIRequest",
    "GymAPIResponse",
    "GymAction",
    "GymFeedback",
    "MessageError",
    "MockEnv",
    "MockTransport",
    "ObservationCodec",
    "RequestHeader",
    "RequestType",
    "ResponseHeader",
    "RosbridgeTransport",
    "from_json",
    "make_bam_vec_env",
    "to_json",
]
