"""The fixed header of a message, and what its kinds are.

A message is the header, then ``meta`` bytes of msgpack (:mod:`shoal.remote._value_codec`), then the
body: raw tensors in the order of the layout. Whoever reads one checks the lengths that the header
announces against what can be, before it makes room for them.

The first two messages of a connection, ``GREETING`` and ``HELLO``, are the same in all versions of
the protocol, so that two that have no version in common can say so.
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
"""The oldest and the newest version of the protocol that this side speaks."""

SHARES_MEMORY = "shared memory"

CAPABILITIES = (SHARES_MEMORY,)
"""What an end may be able to do, in any version; what the other end does not know it ignores."""

HEADER_BYTES = _native.HEADER_BYTES


class Kind(IntEnum):
    """What a message is."""

    GREETING = 1
    HELLO = 2
    WELCOME = 3
    REFUSAL = 4
    READY = 5

    STEP = 10
    RESET = 11
    CALL = 12
    LATEST = 13
    CANCEL = 14
    CLOSE = 15
    ALIVE = 16

    BATCH = 20
    REPLY = 21
    FAILURE = 22
    EXPECT = 23
    ENDED = 24


_KINDS = {int(kind): kind for kind in Kind}


SOME_SLOTS = 1
"""A flag: the body begins with the slots that it speaks of; without it, it speaks of all."""

WHOLE = 2
"""A flag: a step that is answered as a whole, not slot by slot as they are done."""


class Header(NamedTuple):
    """The beginning of a message.

    ``number`` counts the messages of one direction from 1 on, 0 for those that need no delivery;
    ``ack`` is the newest number that the sender has received; ``reply_to`` is the number of the
    request that is answered; ``micros`` are the microseconds that the server has spent on it.
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
    """The header as bytes; native/remote/header.h says how they lie."""
    return _native.pack_header(*header)


def read_header(data: bytes) -> Header:
    """The header that these bytes begin with.

    Raises:
        ProtocolError: There is none.
    """
    found = _native.read_header(data)
    kind = None if found is None else _KINDS.get(found[0])
    if found is None or kind is None:
        raise ProtocolError(f"this is no message of Shoal: it begins with {bytes(data[:8])!r}")
    return Header(kind, *found[1:])
