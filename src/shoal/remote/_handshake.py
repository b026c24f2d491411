"""The handshake of a connection, for both ends."""

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
    ClientHello,
    ClientReady,
    Rejection,
    ServerHello,
    SessionInfo,
    escape_surrogates,
    pack_message,
    unpack_message,
)
from shoal.remote._transports.base import STALL_TIMEOUT, Transport
from shoal.remote._transports.shared_memory import fetch_memory, switch_to_shared_memory
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
    "client_handshake",
    "is_authenticated",
    "receive_client_hello",
    "receive_client_ready",
    "reject",
    "send_unnumbered",
]

_MAX_HELLO = 1 << 16
"""Largest message in bytes that is accepted before authentication."""

_MAX_SESSION_INFO = 1 << 26
_NONCE_BYTES = 32

_REASONS: dict[str, type[ConnectionError]] = {
    "token": AuthenticationError,
    "lease": LeaseError,
    "session": SessionLostError,
}


def send_unnumbered(transport: Transport, kind: Kind, message: Struct) -> None:
    """Send a message without a sequence number."""
    meta = pack_message(message)
    transport.send([pack_header(Header(kind, 0, 0, len(meta), 0, 0, 0, 0, 0)), meta])


def receive_unnumbered(
    transport: Transport, expected: dict[Kind, type[Struct]], deadline: float, limit: int
) -> Struct:
    """Receive one of the expected messages.

    Raises:
        ConnectionLostError: No message arrived before the deadline.
        ProtocolError: Another message arrived, or one larger than the limit.
    """
    head = transport.peek(HEADER_BYTES, max(0.0, deadline - time.monotonic()))
    if head is None:
        raise ConnectionLostError(
            f"{transport.name}: no response to the handshake in time; check that it is a Shoal "
            "server, and that both ends or neither use TLS"
        )
    header = read_header(head)
    if header.kind not in expected or header.meta > limit or header.body or header.number:
        raise ProtocolError(f"expected one of {[kind.name for kind in expected]}, got {header}")
    meta = bytearray(header.meta)
    transport.stall_timeout = max(0.1, deadline - time.monotonic())
    transport.skip(HEADER_BYTES)
    transport.receive_into([meta])
    return unpack_message(expected[header.kind], meta)


def receive_client_hello(transport: Transport, deadline: float) -> tuple[ClientHello, bytes]:
    """Server: greet the client; return its hello message and the nonce that was sent."""
    nonce = os.urandom(_NONCE_BYTES)
    send_unnumbered(transport, Kind.SERVER_HELLO, ServerHello(*VERSIONS, nonce))
    expected: dict[Kind, type[Struct]] = {Kind.CLIENT_HELLO: ClientHello}
    hello = receive_unnumbered(transport, expected, deadline, _MAX_HELLO)
    assert isinstance(hello, ClientHello)
    return hello, nonce


def receive_client_ready(
    transport: Transport, deadline: float, stall_timeout: float = STALL_TIMEOUT
) -> bool:
    """Server: finish the handshake; return whether the client switches to shared memory."""
    expected: dict[Kind, type[Struct]] = {Kind.CLIENT_READY: ClientReady}
    ready = receive_unnumbered(transport, expected, deadline, _MAX_HELLO)
    assert isinstance(ready, ClientReady)
    transport.stall_timeout = stall_timeout
    return ready.is_shared


def reject(transport: Transport, reason: str, message: str, notes: Sequence[str] = ()) -> None:
    """Server: send the reason why there is no session, and close the connection."""
    try:
        escaped = tuple(map(escape_surrogates, notes))
        rejection = Rejection(reason, escape_surrogates(message), escaped)
        send_unnumbered(transport, Kind.REJECTION, rejection)
    except ConnectionLostError:
        return
    finally:
        transport.close()


def client_handshake(
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
    stall_timeout: float | None = None,
) -> SessionInfo:
    """Client: agree on a version, authenticate, and open or resume a session.

    With ``shares``, the connection switches to shared memory if both ends are on one machine.
    ``stall_timeout`` applies to the transport after the handshake.

    Raises:
        RefusedError: The server refuses the session; see its subclasses.
    """
    expected: dict[Kind, type[Struct]] = {
        Kind.SERVER_HELLO: ServerHello,
        Kind.REJECTION: Rejection,
    }
    server_hello = receive_unnumbered(transport, expected, deadline, _MAX_HELLO)
    if isinstance(server_hello, Rejection):
        raise _error_of(transport, server_hello)
    assert isinstance(server_hello, ServerHello)
    oldest, newest = VERSIONS
    version = min(newest, server_hello.newest)
    if version < max(oldest, server_hello.oldest):
        raise RefusedError(
            f"{transport.name} supports protocol versions {server_hello.oldest} to "
            f"{server_hello.newest}, this client {oldest} to {newest}"
        )
    proof = _proof(token, server_hello.nonce) if token is not None else b""
    hello = ClientHello(
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
    send_unnumbered(transport, Kind.CLIENT_HELLO, hello)
    expected = {Kind.SESSION_INFO: SessionInfo, Kind.REJECTION: Rejection}
    info = receive_unnumbered(transport, expected, deadline, _MAX_SESSION_INFO)
    if isinstance(info, Rejection):
        raise _error_of(transport, info)
    assert isinstance(info, SessionInfo)
    memory = None
    if shares and SHARES_MEMORY in info.capabilities and info.local_upgrade:
        memory = fetch_memory(info.local_upgrade, info.session, info.ring)
    send_unnumbered(transport, Kind.CLIENT_READY, ClientReady(memory is not None))
    if memory is not None:
        switch_to_shared_memory(transport, memory, info.ring, 1)
    transport.stall_timeout = STALL_TIMEOUT if stall_timeout is None else stall_timeout
    return info


def _error_of(transport: Transport, rejection: Rejection) -> ConnectionError:
    kind = _REASONS.get(rejection.reason, RefusedError)
    error = kind(f"{transport.name}: {rejection.message}")
    if isinstance(error, RefusedError):
        error.reason = rejection.reason
    for note in rejection.notes:
        error.add_note(note)
    return error


def check_token(token: str | None) -> None:
    """Check the type of a token.

    Raises:
        TypeError: The token is not a string.
    """
    if token is not None and not isinstance(token, str):
        raise TypeError(f"the token must be a string, got {type(token).__name__}")


def is_authenticated(token: str | None, nonce: bytes, proof: bytes) -> bool:
    """Whether the proof matches the token; compares in constant time."""
    return token is None or hmac.compare_digest(_proof(token, nonce), proof)


def _proof(token: str, nonce: bytes) -> bytes:
    return hmac.new(token.encode(), nonce, hashlib.sha256).digest()
