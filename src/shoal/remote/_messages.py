"""What the two ends say to each other besides tensors, each with its schema."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from shoal.errors import ProtocolError

__all__ = [
    "CallRequest",
    "Ended",
    "Expect",
    "Failure",
    "Greeting",
    "Hello",
    "Ready",
    "Refusal",
    "ResetRequest",
    "StepRequest",
    "Welcome",
    "pack_message",
    "unpack_message",
    "whole_text",
]

Message = TypeVar("Message", bound=Struct)


class Greeting(Struct, frozen=True):
    """The server's first word: which versions it speaks, and what a token is proven with."""

    oldest: int
    newest: int
    nonce: bytes


class Hello(Struct, frozen=True):
    """The client's first word: who it is, and what it wants.

    ``proof`` is an HMAC of the nonce with the token, so that the token itself never travels.
    ``session`` and ``received`` are those of a session to be resumed.
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
    values: bytes = b""  # arguments of the factory
    capabilities: tuple[str, ...] = ()


class Welcome(Struct, frozen=True):
    """A session has begun, or goes on."""

    session: bytes
    received: int  # the newest request that has arrived
    num_envs: int
    autoreset_mode: str
    render_mode: str | None
    values: bytes  # spaces and metadata
    max_inflight: int
    max_meta: int
    session_ttl: float
    lease: float | None = None  # seconds after which a silent owner has lost its device
    local_upgrade: str = ""  # where a client of the same machine is handed memory to share
    ring: int = 0  # the capacity of a ring in bytes
    capabilities: tuple[str, ...] = ()  # those that both ends have


class Ready(Struct, frozen=True):
    """The client's last word before it asks for something."""

    is_shared: bool  # whether it goes on over shared memory


class Refusal(Struct, frozen=True):
    """There will be no session, and why."""

    reason: str
    message: str
    notes: tuple[str, ...] = ()


class StepRequest(Struct, frozen=True):
    """What a step needs besides its tensors."""

    deadlines: tuple[float, ...] = ()  # seconds from now on, one for each slot
    extras: bytes = b""  # values: actions that are no tensors


class ResetRequest(Struct, frozen=True):
    """What a reset needs."""

    slots: tuple[int, ...]
    values: bytes  # seeds, one or None for each slot, and options


class CallRequest(Struct, frozen=True):
    """A method or attribute of environments, by name; or one of the functions that reach them."""

    what: str
    is_function: bool
    slots: tuple[int, ...]
    values: bytes  # positional and keyword arguments


class Failure(Struct, frozen=True):
    """An exception, as far as it can be told."""

    name: str
    builtin: str
    message: str
    notes: tuple[str, ...] = ()
    traceback: str = ""
    is_known: bool = False  # whether both ends have a class of this name
    slots: tuple[int, ...] | None = None  # those that it concerns, None for all of a request


class Expect(Struct, frozen=True):
    """How long a request will probably take."""

    seconds: float


class Ended(Struct, frozen=True):
    """The session is over, and why."""

    reason: str
    message: str


def whole_text(text: str) -> str:
    """A text without halves of characters, which file names may have in them."""
    return text.encode(errors="backslashreplace").decode()


def pack_message(message: Struct) -> bytes:
    """A message as bytes."""
    return msgspec.msgpack.encode(message)


def unpack_message(kind: type[Message], data: Any) -> Message:
    """A message of this kind.

    Raises:
        ProtocolError: These are not the bytes of one.
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise ProtocolError(f"{kind.__name__} could not be read: {error}") from error
