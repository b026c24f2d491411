"""The server: it accepts connections, authenticates clients and runs their sessions."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from shoal.errors import ConnectionLostError, ProtocolError
from shoal.remote._address import Address, apply_tls
from shoal.remote._exit_hooks import close_at_exit, closing_signals, release_in_children
from shoal.remote._handshake import check_token, is_authenticated, receive_client_hello, reject
from shoal.remote._hosting import Hosted, as_hosted, open_pool
from shoal.remote._leases import Claim, Lease, LeaseHeldError
from shoal.remote._messages import ClientHello, SessionEnded
from shoal.remote._request_handler import SessionOptions
from shoal.remote._session import Session
from shoal.remote._transports.base import Transport
from shoal.remote._transports.opening import listen
from shoal.remote._transports.security import TLS
from shoal.remote._transports.shared_memory import LocalUpgrade
from shoal.remote._value_codec import unpack_values
from shoal.remote._wire import VERSIONS

__all__ = ["Server", "serve"]

_HANDSHAKE_TIMEOUT = 10.0
"""Seconds that a client has to authenticate."""

_MAX_UNAUTHENTICATED = 64
"""Connections at once of clients that have not authenticated."""

_MAX_ENDINGS = 256
"""Ended sessions whose reason is remembered."""

_CLOSE_TIMEOUT = 30.0
"""Seconds that sessions have to end when the server is closed."""

_TAKEOVER_TIMEOUT = 10.0
"""Seconds that the owner of a lease has to release it to a client with a higher priority."""


def serve(
    hosted: Mapping[str, Any],
    bind: str | Sequence[str] = "tcp://127.0.0.1:7711",
    *,
    token: str | None = None,
    tls: TLS | None = None,
    max_sessions: int = 64,
    session_ttl: float = 60.0,
    max_inflight: int = 1024,
    max_meta: int = 1 << 26,
    max_envs: int = 1 << 16,
    tracebacks: bool = False,
) -> Server:
    """Host vectors for clients in other processes or on other machines.

    The function returns at once; the server runs in threads until it is closed. A script usually
    ends with ``serve(...).wait()``.

    Args:
        hosted: A dict from names to factories, ids of environments, or
            :class:`~shoal.remote._hosting.Hosted` objects. A factory makes a Shoal vector or pool,
            a Gymnasium ``VectorEnv``, or a :class:`~shoal.remote._device.Device`. It is called once
            per session, with ``num_envs`` if it has this parameter.
        bind: The address, or several addresses, to listen at: ``tcp://host:port``,
            ``tls://host:port``, ``ws://``, ``wss://``, ``unix://path`` or ``inproc://name``. Port 0
            selects a free port, see :attr:`Server.urls`.
        token: The secret token of clients. A token or TLS is required if other machines can
            connect.
        tls: Files (certificate, key), or (certificate, key, authority) if clients must present a
            certificate of that authority, or an SSL context. With it, ``tcp://`` means ``tls://``
            and ``ws://`` means ``wss://``, unless another address is encrypted already.
        max_sessions: Largest number of sessions at once.
        session_ttl: Seconds to keep a session without a connection, if its client can resume it.
        max_inflight: Largest number of requests that a client may have in flight.
        max_meta: Largest size in bytes of the infos, options or arguments of a message. Larger
            infos are not sent; the first slot's info ``unsent`` then says so.
        max_envs: Largest number of slots that a client may request.
        tracebacks: Whether exceptions that are sent to clients include tracebacks.

    Example:
        >>> import shoal
        >>> with shoal.serve({"CartPole-v1": "CartPole-v1"}, "inproc://doc") as server:
        ...     with shoal.connect("inproc://doc#CartPole-v1", num_envs=2) as envs:
        ...         observations, infos = envs.reset(seed=1)
        >>> observations.shape
        (2, 4)
    """
    return Server(
        hosted,
        bind,
        token=token,
        tls=tls,
        max_sessions=max_sessions,
        max_envs=max_envs,
        options=SessionOptions(session_ttl, max_inflight, max_meta, tracebacks),
    )


class Server:
    """A running server; :func:`serve` documents the arguments."""

    def __init__(
        self,
        hosted: Mapping[str, Any],
        bind: str | Sequence[str],
        *,
        token: str | None,
        tls: TLS | None,
        max_sessions: int,
        max_envs: int,
        options: SessionOptions,
    ) -> None:
        if not isinstance(hosted, Mapping):
            raise TypeError(f"hosted must be a dict {{name: factory}}, got {hosted!r}")
        self._hosted = {name: as_hosted(target) for name, target in hosted.items()}
        if not self._hosted:
            raise ValueError("hosted must not be empty")
        check_token(token)
        if token == "":
            raise ValueError("the token must not be empty")
        _check_options(options, max_sessions, max_envs)
        self._token = token
        self._max_sessions = max_sessions
        self._max_envs = max_envs
        self._options = options
        self._sessions: dict[bytes, Session] = {}
        self._endings: dict[bytes, SessionEnded] = {}  # of the newest sessions that have ended
        self._leases = {name: Lease() for name, each in self._hosted.items() if each.exclusive}
        self._lock = threading.Lock()
        self._opening = 0  # sessions whose pools are being created
        # Connections of clients that have not authenticated, the oldest first, and whether they
        # were closed.
        self._unauthenticated: dict[Transport, bool] = {}
        self._closed = threading.Event()
        self._listeners: list[Any] = []
        self._local_upgrade: LocalUpgrade | None = None
        urls = [bind] if isinstance(bind, str) else list(bind)
        addresses = apply_tls([Address.parse(url) for url in urls], tls)
        for address in addresses:
            _check_address(address, token, tls)
        try:
            schemes = {address.scheme for address in addresses}
            if sys.platform == "linux" and schemes & {"tcp", "unix"}:
                self._local_upgrade = LocalUpgrade(self._give_memory)
            for address in addresses:
                its_tls = tls if address.is_encrypted else None
                self._listeners.append(listen(address, self._on_connection, its_tls))
        except BaseException:
            self.close()
            raise
        self.urls = [str(listener.address) for listener in self._listeners]
        """The addresses of the server in the order of ``bind``, with the actual port numbers."""
        close_at_exit(self)
        release_in_children(self)

    @property
    def url(self) -> str:
        """The first address of the server."""
        return self.urls[0]

    @property
    def names(self) -> list[str]:
        """The names of the hosted vectors."""
        return list(self._hosted)

    @property
    def sessions(self) -> int:
        """Number of active sessions."""
        return len(self._sessions)

    def wait(self) -> None:
        """Wait until the server is closed by another thread or by Ctrl-C.

        In the main thread, SIGTERM and SIGHUP close it as well, so that devices are put into their
        safe state.
        """
        with closing_signals():
            try:
                while not self._closed.wait(1.0):
                    pass
            except KeyboardInterrupt:
                self.close()

    def close(self) -> None:
        """End all sessions and stop listening; a second call does nothing."""
        self._closed.set()
        deadline = time.monotonic() + _CLOSE_TIMEOUT
        # Sessions end first, so that their clients receive the reason.
        while time.monotonic() < deadline:
            with self._lock:
                sessions, opening = list(self._sessions.values()), self._opening
            if not sessions and not opening:
                break
            for session in sessions:
                session.end("server", "the server was closed")
                if time.monotonic() > deadline - _CLOSE_TIMEOUT / 2:
                    session.disconnect()
            time.sleep(0.005)
        self._close_unauthenticated(deadline)
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.close()
        self._close_unauthenticated(deadline)  # connections that were accepted meanwhile
        local_upgrade, self._local_upgrade = self._local_upgrade, None
        if local_upgrade is not None:
            local_upgrade.close()

    def _close_unauthenticated(self, deadline: float) -> None:
        """Close connections without authentication, and wait for their threads."""
        while self._unauthenticated and time.monotonic() < deadline:
            for transport in list(self._unauthenticated):
                transport.close()
            time.sleep(0.005)

    def release_in_child(self) -> None:
        """Release all sockets in a forked child without closing those of the parent."""
        self._closed.set()
        self._lock = threading.Lock()  # a thread that does not exist here may hold the old one
        for session in self._sessions.values():
            session.release_in_child()
        for transport in self._unauthenticated:
            transport.release_in_child()
        self._sessions, self._unauthenticated = {}, {}
        for listener in self._listeners:
            listener.release_in_child()
        self._listeners, self._local_upgrade = [], None

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Called in the thread of a connection

    def _on_connection(self, transport: Transport) -> None:
        self._make_room()
        with self._lock:
            self._unauthenticated[transport] = False
        try:
            hello = self._authenticate(transport)
        except (ConnectionLostError, ProtocolError):
            transport.close()
            return
        finally:
            with self._lock:
                del self._unauthenticated[transport]
        try:
            if hello.session:
                self._resume(transport, hello)
            else:
                self._open(transport, hello)
        except _Rejected as rejected:
            reject(transport, rejected.reason, str(rejected), rejected.notes)
        except BaseException:
            transport.close()
            raise

    def _make_room(self) -> None:
        """Close the oldest connections without authentication if there are too many."""
        with self._lock:
            waiting = [each for each, is_closed in self._unauthenticated.items() if not is_closed]
            oldest = waiting[: max(0, len(waiting) + 1 - _MAX_UNAUTHENTICATED)]
            self._unauthenticated.update(dict.fromkeys(oldest, True))
        for transport in oldest:
            transport.close()

    def _authenticate(self, transport: Transport) -> ClientHello:
        hello, nonce = receive_client_hello(transport, time.monotonic() + _HANDSHAKE_TIMEOUT)
        try:
            self._check_hello(hello, nonce)
        except _Rejected as rejected:
            reject(transport, rejected.reason, str(rejected))
            raise ConnectionLostError("rejected") from rejected
        return hello

    def _check_hello(self, hello: ClientHello, nonce: bytes) -> None:
        oldest, newest = VERSIONS
        if not oldest <= hello.version <= newest:
            raise _Rejected(
                "version",
                f"protocol version {hello.version} is not supported, the server supports "
                f"{oldest} to {newest}",
            )
        if not is_authenticated(self._token, nonce, hello.proof):
            problem = "the token is wrong" if hello.proof else "a token is required"
            raise _Rejected("token", problem)
        if hello.num_envs is not None and not 1 <= hello.num_envs <= self._max_envs:
            raise _Rejected(
                "num_envs",
                f"{hello.num_envs} slots were requested, expected 1 to {self._max_envs}",
            )
        if not hello.session and hello.name not in self._hosted:
            known = ", ".join(self._hosted)
            raise _Rejected(
                "name", f"the server does not host {hello.name!r}; hosted names: {known}"
            )

    def _resume(self, transport: Transport, hello: ClientHello) -> None:
        session = self._sessions.get(hello.session)
        if session is None or not session.attach(transport, hello.received):
            ending = self._endings.get(hello.session)
            if ending is None:
                raise _Rejected("session", "the session has ended, and its environments are closed")
            # The SESSION_ENDED message may have been lost with the connection.
            reason = "lease" if ending.reason == "lease" else "session"
            raise _Rejected(reason, f"the server has ended the session: {ending.message}")

    def _open(self, transport: Transport, hello: ClientHello) -> None:
        """Open a session, and run it."""
        hosted = self._hosted[hello.name]
        lease = self._leases.get(hello.name)
        claim = Claim(hello.client, hello.priority)
        with self._lock:
            if self._closed.is_set():
                raise _Rejected("server", "the server was closed")
            if len(self._sessions) + self._opening >= self._max_sessions:
                raise _Rejected("full", f"there are {self._max_sessions} sessions already")
            self._opening += 1
        try:
            try:
                if lease is not None:
                    _acquire(lease, claim)
                claim.session = self._create_session(transport, hello, hosted)
            finally:
                with self._lock:
                    self._opening -= 1
            try:
                claim.session.run()
            finally:
                self._remove_session(claim.session)
        finally:
            if lease is not None:
                lease.release(claim)

    def _remove_session(self, session: Session) -> None:
        with self._lock:
            del self._sessions[session.identifier]
            if session.ending is not None:
                self._endings[session.identifier] = session.ending
            while len(self._endings) > _MAX_ENDINGS:
                del self._endings[next(iter(self._endings))]

    def _give_memory(self, key: bytes) -> int | None:
        session = self._sessions.get(key)
        return None if session is None else session.shared_memory()

    def _create_session(self, transport: Transport, hello: ClientHello, hosted: Hosted) -> Session:
        try:
            arguments = unpack_values(hello.values) if hello.values else {}
            pool = open_pool(hosted, hello.num_envs, arguments)
            try:
                upgrade = "" if self._local_upgrade is None else self._local_upgrade.name
                session = Session(
                    os.urandom(16), hosted, hello, pool, transport, self._options, upgrade
                )
            except BaseException:
                pool.close()
                raise
        except Exception as error:
            notes = getattr(error, "__notes__", ())
            raise _Rejected("factory", f"{type(error).__name__}: {error}", notes) from error
        with self._lock:
            self._sessions[session.identifier] = session
        if self._closed.is_set():
            session.end("server", "the server was closed")
        return session


class _Rejected(Exception):  # noqa: N818 - sent to the client
    """The reason why the server refuses a session."""

    def __init__(self, reason: str, message: str, notes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.notes = notes


def _acquire(lease: Lease, claim: Claim) -> None:
    try:
        lease.acquire(claim, _TAKEOVER_TIMEOUT)
    except LeaseHeldError as error:
        raise _Rejected("lease", str(error)) from error


def _check_address(address: Address, token: str | None, tls: TLS | None) -> None:
    if address.name:
        raise ValueError(f"{address}: a server listens for all names, remove {address.name!r}")
    if address.is_encrypted and tls is None:
        raise ValueError(f"{address} needs tls=(certificate, key)")
    if not address.is_loopback and token is None and not address.is_encrypted:
        raise ValueError(
            f"{address} can be reached from other machines: pass a token, use TLS, or listen at "
            "127.0.0.1"
        )


def _check_options(options: SessionOptions, max_sessions: int, max_envs: int) -> None:
    counts = {
        "max_sessions": max_sessions,
        "max_envs": max_envs,
        "max_inflight": options.max_inflight,
        "max_meta": options.max_meta,
    }
    for name, value in counts.items():
        if not 1 <= value < 2**32:
            raise ValueError(f"{name} must be a positive integer below 2**32, got {value!r}")
    if not options.session_ttl >= 0:
        raise ValueError(f"session_ttl must not be negative, got {options.session_ttl!r}")
