"""The schemas of all messages that are not tensors."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from shoal.errors import ProtocolError

__all__ = [
    "CallRequest",
    "ClientHello",
    "ClientReady",
    "ExpectedDuration",
    "Failure",
    "Rejection",
    "ResetRequest",
    "ServerHello",
    "SessionEnded",
    "SessionInfo",
    "StepRequest",
    "escape_surrogates",
    "pack_message",
    "unpack_message",
]

Message = TypeVar("Message", bound=Struct)


class ServerHello(Struct, frozen=True):
    """The first message of a server: its protocol versions and the nonce for authentication."""

    oldest: int
    newest: int
    nonce: bytes


class ClientHello(Struct, frozen=True):
    """The first message of a client: the requested session.

    ``proof`` is an HMAC of the nonce with the token; the token itself is never sent. ``session``
    and ``received`` identify a session to resume.
    """

    version: int
    name: str
    num_envs: int | None = None
    proof: bytes = b""
    session: bytes = b""
    received: int = 0
    resumable: bool = False
    priority: int = 0
    client: str = ""
    values: bytes = b""  # packed keyword arguments of the factory
    capabilities: tuple[str, ...] = ()


class SessionInfo(Struct, frozen=True):
    """The parameters of a session that was opened or resumed."""

    session: bytes
    received: int  # the number of the newest request that the server has received
    num_envs: int
    autoreset_mode: str
    render_mode: str | None
    values: bytes  # packed spaces and metadata
    max_inflight: int
    max_meta: int
    session_ttl: float
    lease: float | None = None  # seconds of silence after which an exclusive owner is dropped
    local_upgrade: str = ""  # the socket where a local client receives shared memory
    ring: int = 0  # the capacity of a ring in bytes
    capabilities: tuple[str, ...] = ()  # those of both ends


class ClientReady(Struct, frozen=True):
    """The last message of the handshake."""

    is_shared: bool  # whether the client switches to shared memory


class Rejection(Struct, frozen=True):
    """The server refuses to open or resume a session."""

    reason: str
    message: str
    notes: tuple[str, ...] = ()


class StepRequest(Struct, frozen=True):
    """The part of a step request that is not tensors."""

    deadlines: tuple[float, ...] = ()  # seconds from now, one per slot
    extras: bytes = b""  # packed actions that are not tensors


class ResetRequest(Struct, frozen=True):
    """A reset request."""

    slots: tuple[int, ...]
    values: bytes  # packed seeds (an integer or None per slot) and options


class CallRequest(Struct, frozen=True):
    """A call of a method, an attribute or an allowed function by name."""

    what: str
    is_function: bool
    slots: tuple[int, ...]
    values: bytes  # packed positional and keyword arguments


class Failure(Struct, frozen=True):
    """An exception that was raised by a request."""

    name: str
    builtin: str
    message: str
    notes: tuple[str, ...] = ()
    traceback: str = ""
    is_known: bool = False  # whether both ends can construct an exception of this name
    slots: tuple[int, ...] | None = None  # the affected slots; None for all of the request


class ExpectedDuration(Struct, frozen=True):
    """The expected duration of a request that is in progress."""

    seconds: float


class SessionEnded(Struct, frozen=True):
    """The server has ended the session."""

    reason: str
    message: str


def escape_surrogates(text: str) -> str:
    """Escape surrogates, which are valid in file names but cannot be encoded as UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def pack_message(message: Struct) -> bytes:
    """Encode a message."""
    return msgspec.msgpack.encode(message)


def unpack_message(kind: type[Message], data: Any) -> Message:
    """Decode a message of this kind.

    Raises:
        ProtocolError: The bytes are not a valid message of this kind.
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise ProtocolError(f"invalid {kind.__name__} message: {error}") from error
