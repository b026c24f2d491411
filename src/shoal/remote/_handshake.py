"""The first messages of a connection, on both ends."""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Sequence

from msgspec import Struct

from shoal.errors import (
    AuthenticationError,
    ConnectionLostError,
    LeaseError,
    ProtocolError,
    RefusedError,
    SessionLostError,
)
from shoal.remote._messages import (
    Greeting,
    Hello,
    Ready,
    Refusal,
    Welcome,
    pack_message,
    unpack_message,
    whole_text,
)
from shoal.remote._transports.base import STALL_TIMEOUT, Transport
from shoal.remote._transports.shared_memory import fetch_memory, go_over
from shoal.remote._wire import (
    CAPABILITIES,
    HEADER_BYTES,
    SHARES_MEMORY,
    VERSIONS,
    Header,
    Kind,
    pack_header,
    read_header,
)

__all__ = [
    "check_token",
    "greeted",
    "heard_ready",
    "introduced",
    "is_proven",
    "refuse",
    "write_plain",
]

_LIMIT = 1 << 16
"""Bytes of a first message before anybody is known to be anybody."""

_WELCOME_LIMIT = 1 << 26
_NONCE_BYTES = 32

_REASONS: dict[str, type[ConnectionError]] = {
    "token": AuthenticationError,
    "lease": LeaseError,
    "session": SessionLostError,
}


def write_plain(transport: Transport, kind: Kind, message: Struct) -> None:
    """Send a message that has no number."""
    meta = pack_message(message)
    transport.send([pack_header(Header(kind, 0, 0, len(meta), 0, 0, 0, 0, 0)), meta])


def read_plain(
    transport: Transport, wanted: dict[Kind, type[Struct]], deadline: float, limit: int
) -> Struct:
    """Receive one of these messages.

    Raises:
        ConnectionLostError: It has not come in time.
        ProtocolError: Another one has come, or one beyond the limit.
    """
    head = transport.peek(HEADER_BYTES, max(0.0, deadline - time.monotonic()))
    if head is None:
        raise ConnectionLostError(
            f"{transport.name}: no answer in time; is it a server of Shoal, and TLS used by both "
            "ends or by none?"
        )
    header = read_header(head)
    if header.kind not in wanted or header.meta > limit or header.body or header.number:
        raise ProtocolError(f"expected one of {[kind.name for kind in wanted]}, got {header}")
    meta = bytearray(header.meta)
    transport.stall_timeout = max(0.1, deadline - time.monotonic())
    transport.skip(HEADER_BYTES)
    transport.receive_into([meta])
    return unpack_message(wanted[header.kind], meta)


def greeted(transport: Transport, deadline: float) -> tuple[Hello, bytes]:
    """The server's part: say who we are, and hear who it is. Returns the nonce as well."""
    nonce = os.urandom(_NONCE_BYTES)
    write_plain(transport, Kind.GREETING, Greeting(*VERSIONS, nonce))
    hello = read_plain(transport, {Kind.HELLO: Hello}, deadline, _LIMIT)
    assert isinstance(hello, Hello)
    return hello, nonce


def heard_ready(transport: Transport, deadline: float, patience: float = STALL_TIMEOUT) -> bool:
    """The end of the server's part: hear whether the client goes on over shared memory."""
    ready = read_plain(transport, {Kind.READY: Ready}, deadline, _LIMIT)
    assert isinstance(ready, Ready)
    transport.stall_timeout = patience
    return ready.is_shared


def refuse(transport: Transport, reason: str, message: str, notes: Sequence[str] = ()) -> None:
    """Say why there will be no session, to whoever is still listening, and hang up."""
    try:
        told = Refusal(reason, whole_text(message), tuple(map(whole_text, notes)))
        write_plain(transport, Kind.REFUSAL, told)
    except ConnectionLostError:
        return
    finally:
        transport.close()


def introduced(
    transport: Transport,
    *,
    deadline: float,
    token: str | None,
    name: str,
    num_envs: int | None = None,
    session: bytes = b"",
    received: int = 0,
    resumable: bool = False,
    priority: int = 0,
    client: str = "",
    values: bytes = b"",
    shares: bool = False,
    patience: float | None = None,
) -> Welcome:
    """The client's part: hear which versions there are, say what is wanted, and be welcome.

    With ``shares``, the connection goes on over shared memory if both ends are on one machine.
    ``patience`` is that of the transport from then on.

    Raises:
        RefusedError: There is no session to be had; see its subclasses.
    """
    kinds: dict[Kind, type[Struct]] = {Kind.GREETING: Greeting, Kind.REFUSAL: Refusal}
    greeting = read_plain(transport, kinds, deadline, _LIMIT)
    if isinstance(greeting, Refusal):
        raise _refused(transport, greeting)
    assert isinstance(greeting, Greeting)
    oldest, newest = VERSIONS
    version = min(newest, greeting.newest)
    if version < max(oldest, greeting.oldest):
        raise RefusedError(
            f"{transport.name} speaks versions {greeting.oldest} to {greeting.newest} of the "
            f"protocol, this side {oldest} to {newest}"
        )
    proof = _proof(token, greeting.nonce) if token is not None else b""
    hello = Hello(
        version,
        name,
        num_envs,
        proof,
        session,
        received,
        resumable,
        priority,
        client,
        values,
        CAPABILITIES if shares else (),
    )
    write_plain(transport, Kind.HELLO, hello)
    kinds = {Kind.WELCOME: Welcome, Kind.REFUSAL: Refusal}
    answer = read_plain(transport, kinds, deadline, _WELCOME_LIMIT)
    if isinstance(answer, Refusal):
        raise _refused(transport, answer)
    assert isinstance(answer, Welcome)
    memory = None
    if shares and SHARES_MEMORY in answer.capabilities and answer.local_upgrade:
        memory = fetch_memory(answer.local_upgrade, answer.session, answer.ring)
    write_plain(transport, Kind.READY, Ready(memory is not None))
    if memory is not None:
        go_over(transport, memory, answer.ring, 1)
    transport.stall_timeout = STALL_TIMEOUT if patience is None else patience
    return answer


def _refused(transport: Transport, refusal: Refusal) -> ConnectionError:
    kind = _REASONS.get(refusal.reason, RefusedError)
    error = kind(f"{transport.name}: {refusal.message}")
    if isinstance(error, RefusedError):
        error.reason = refusal.reason
    for note in refusal.notes:
        error.add_note(note)
    return error


def check_token(token: str | None) -> None:
    """Refuse what is no token.

    Raises:
        TypeError: It is no text.
    """
    if token is not None and not isinstance(token, str):
        raise TypeError(f"the token must be a text, got {type(token).__name__}")


def is_proven(token: str | None, nonce: bytes, proof: bytes) -> bool:
    """Whether a client knows the token; compared in constant time."""
    return token is None or hmac.compare_digest(_proof(token, nonce), proof)


def _proof(token: str, nonce: bytes) -> bytes:
    return hmac.new(token.encode(), nonce, hashlib.sha256).digest()
