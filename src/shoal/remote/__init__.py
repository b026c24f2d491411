"""Vectors of environments in other processes or on other machines.

:func:`shoal.serve` hosts vectors, and :func:`shoal.connect` connects to one of them. A batch of
all slots is one message in each direction.

How it works: docs/internals/remote.md.
"""

from shoal.errors import MissingExtraError

try:
    import msgspec as _msgspec  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError('msgspec is not installed: pip install "shoal[remote]"') from error

from shoal.remote._connect import connect
from shoal.remote._device import Device, Feedback, Status
from shoal.remote._hosting import Hosted
from shoal.remote._server import Server, serve
from shoal.remote._value_codec import Unsent
from shoal.remote._vector import RemoteVectorEnv

__all__ = [
    "Device",
    "Feedback",
    "Hosted",
    "RemoteVectorEnv",
    "Server",
    "Status",
    "Unsent",
    "connect",
    "serve",
]
