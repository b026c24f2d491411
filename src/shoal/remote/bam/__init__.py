"""Vectors over BAM's GymAPI: one request steps all slots of a robot cell.

All names are imported from this module: ``make_bam_vec_env``, ``MockEnv`` and ``MockTransport``
correspond to ``bam_gym.envs.make_bam_vec_env``, ``bam_gym.envs.clients.mock_env.MockEnv`` and
``bam_gym.transport.MockTransport``. ``to_json`` and ``from_json`` convert messages.
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
