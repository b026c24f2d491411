"""The message header of the wire protocol, and the kinds of messages.

A message is a header, then ``meta`` bytes of msgpack (:mod:`shoal.remote._value_codec`), then a
body of raw tensors in the order of the layout. The receiver checks the lengths in the header
before it allocates memory for them.

``SERVER_HELLO`` and ``CLIENT_HELLO``, the first two messages of a connection, are the same in all
versions of the protocol, so that two ends without a common version can report it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from shoal import _native
from shoal.errors import ProtocolError

__all__ = [
    "CAPABILITIES",
    "HEADER_BYTES",
    "SHARES_MEMORY",
    "SOME_SLOTS",
    "VERSIONS",
    "WHOLE",
    "Header",
    "Kind",
    "pack_header",
    "read_header",
]

VERSIONS = (1, 1)
"""The oldest and the newest protocol version that this end supports."""

SHARES_MEMORY = "shared memory"

CAPABILITIES = (SHARES_MEMORY,)
"""Optional features of this end. Unknown capabilities of the other end are ignored."""

HEADER_BYTES = _native.HEADER_BYTES


class Kind(IntEnum):
    """The kind of a message."""

    SERVER_HELLO = 1
    CLIENT_HELLO = 2
    SESSION_INFO = 3
    REJECTION = 4
    CLIENT_READY = 5

    STEP = 10
    RESET = 11
    CALL = 12
    LATEST = 13
    CANCEL = 14
    CLOSE = 15
    HEARTBEAT = 16

    BATCH = 20
    REPLY = 21
    FAILURE = 22
    EXPECTED_DURATION = 23
    SESSION_ENDED = 24


_KINDS = {int(kind): kind for kind in Kind}


SOME_SLOTS = 1
"""Flag: the body starts with slot numbers. Without it, the body covers all slots."""

WHOLE = 2
"""Flag: respond to this step with one batch of all slots, not slot by slot."""


class Header(NamedTuple):
    """The header of a message.

    Attributes:
        kind: The kind of the message.
        flags: A combination of ``SOME_SLOTS`` and ``WHOLE``.
        rows: Number of slots in the body.
        meta: Bytes of msgpack that follow the header.
        micros: Microseconds that the server spent on the request.
        number: Sequence number in this direction, from 1; 0 for a message that may be lost.
        ack: The newest sequence number that the sender has received.
        reply_to: The sequence number of the request that this message responds to.
        body: Bytes of tensors that follow the meta part.
    """

    kind: Kind
    flags: int
    rows: int
    meta: int
    micros: int
    number: int
    ack: int
    reply_to: int
    body: int


def pack_header(header: Header) -> bytes:
    """Encode a header; native/remote/header.h defines the format."""
    return _native.pack_header(*header)


def read_header(data: bytes) -> Header:
    """Decode the header at the start of ``data``.

    Raises:
        ProtocolError: The bytes are not a valid header.
    """
    fields = _native.read_header(data)
    kind = None if fields is None else _KINDS.get(fields[0])
    if fields is None or kind is None:
        raise ProtocolError(f"invalid message header: it starts with {bytes(data[:8])!r}")
    return Header(kind, *fields[1:])
