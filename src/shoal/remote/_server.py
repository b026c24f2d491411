"""The server: it listens, lets clients in, and keeps their sessions."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from shoal.errors import ConnectionLostError, ProtocolError
from shoal.remote._address import Address, encrypted_if_asked
from shoal.remote._exit_hooks import close_at_exit, closing_signals, forget_in_children
from shoal.remote._handshake import check_token, greeted, is_proven, refuse
from shoal.remote._hosting import Hosted, as_hosted, open_pool
from shoal.remote._leases import Claim, HeldError, Lease
from shoal.remote._messages import Ended, Hello
from shoal.remote._request_handler import Rules
from shoal.remote._session import Session
from shoal.remote._transports.base import Transport
from shoal.remote._transports.opening import listen
from shoal.remote._transports.security import TLS
from shoal.remote._transports.shared_memory import LocalUpgrade
from shoal.remote._value_codec import unpack_values
from shoal.remote._wire import VERSIONS

__all__ = ["Server", "serve"]

_HANDSHAKE = 10.0
"""Seconds that a client has to introduce itself."""

_MOST_STRANGERS = 64
"""Connections at once of clients that have not introduced themselves."""

_MOST_ENDINGS = 256
"""Sessions of which is remembered why they have ended."""

_CLOSING = 30.0
"""Seconds that sessions have to end when the server is closed."""

_TAKE_OVER = 10.0
"""Seconds that the owner of a device has to let go of it for another one."""


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
    """Host vectors for clients on other machines, or in other processes.

    It returns at once, and serves in threads of its own until it is closed; ``serve(...).wait()``
    is what a script ends with.

    Args:
        hosted: By name: a factory that makes a Shoal vector or pool, a Gymnasium ``VectorEnv``, or
            a :class:`~shoal.remote._device.Device`; an environment's id; or a
            :class:`~shoal.remote._hosting.Hosted`, for something that there is one of. A factory is
            called for each session, with ``num_envs`` if it takes it.
        bind: Where to listen: ``tcp://host:port``, ``tls://host:port``, ``ws://``, ``wss://``,
            ``unix://path``, ``inproc://name``; or several of these. Port 0 takes a free one, see
            :attr:`Server.urls`.
        token: What clients must know. It, or TLS, is needed to listen where other machines can
            connect.
        tls: Files (certificate, key), or (certificate, key, authority) where clients must show a
            certificate of that authority; or a context. With it, ``tcp://`` means ``tls://`` and
            ``ws://`` means ``wss://``, unless another place says so itself.
        max_sessions: How many sessions there may be at once.
        session_ttl: Seconds that a session outlives its connection, if the client wants to resume.
        max_inflight: Requests that one client may have in flight.
        max_meta: Bytes that infos, options and arguments of one message may have. Infos beyond
            that are not sent: the first slot's info ``unsent`` says so.
        max_envs: How many slots a client may ask for.
        tracebacks: Whether clients are told where in the server's code an exception was raised.

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
        rules=Rules(session_ttl, max_inflight, max_meta, tracebacks),
    )


class Server:
    """A running server; :func:`serve` explains its arguments."""

    def __init__(
        self,
        hosted: Mapping[str, Any],
        bind: str | Sequence[str],
        *,
        token: str | None,
        tls: TLS | None,
        max_sessions: int,
        max_envs: int,
        rules: Rules,
    ) -> None:
        if not isinstance(hosted, Mapping):
            raise TypeError(f"expected what to host by name, {{name: factory}}, got {hosted!r}")
        self._hosted = {name: as_hosted(what) for name, what in hosted.items()}
        if not self._hosted:
            raise ValueError("there is nothing to host")
        check_token(token)
        if token == "":
            raise ValueError("the token is empty, and would let everybody in")
        _check_rules(rules, max_sessions, max_envs)
        self._token = token
        self._max_sessions = max_sessions
        self._max_envs = max_envs
        self._rules = rules
        self._sessions: dict[bytes, Session] = {}
        self._endings: dict[bytes, Ended] = {}  # of sessions that were, the latest of them
        self._leases = {name: Lease() for name, each in self._hosted.items() if each.exclusive}
        self._lock = threading.Lock()
        self._opening = 0  # sessions whose vectors are being made
        # Clients that have not introduced themselves, the oldest first; whether we hung up on them.
        self._strangers: dict[Transport, bool] = {}
        self._closed = threading.Event()
        self._listeners: list[Any] = []
        self._local_upgrade: LocalUpgrade | None = None
        urls = [bind] if isinstance(bind, str) else list(bind)
        places = encrypted_if_asked([Address.of(url) for url in urls], tls)
        for place in places:
            _check_place(place, token, tls)
        try:
            if sys.platform == "linux" and any(each.scheme in ("tcp", "unix") for each in places):
                self._local_upgrade = LocalUpgrade(self._give_memory)
            for place in places:
                used = tls if place.is_encrypted else None
                self._listeners.append(listen(place, self._arrived, used))
        except BaseException:
            self.close()
            raise
        self.urls = [str(listener.address) for listener in self._listeners]
        """Where it listens, in the order of ``bind``; with the ports that were free."""
        close_at_exit(self)
        forget_in_children(self)

    @property
    def url(self) -> str:
        """Where it listens, the first place."""
        return self.urls[0]

    @property
    def names(self) -> list[str]:
        """The names of what is hosted."""
        return list(self._hosted)

    @property
    def sessions(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    def wait(self) -> None:
        """Wait until the server is closed, by another thread or by Ctrl-C.

        In the main thread, SIGTERM and SIGHUP close it as well, so that no device is left as it is.
        """
        with closing_signals():
            try:
                while not self._closed.wait(1.0):
                    pass
            except KeyboardInterrupt:
                self.close()

    def close(self) -> None:
        """End all sessions, and let no more clients in; a second call does nothing."""
        self._closed.set()
        deadline = time.monotonic() + _CLOSING
        # The sessions first: their clients are told why.
        while time.monotonic() < deadline:
            with self._lock:
                sessions, opening = list(self._sessions.values()), self._opening
            if not sessions and not opening:
                break
            for session in sessions:
                session.end("server", "the server was closed")
                if time.monotonic() > deadline - _CLOSING / 2:
                    session.cut()
            time.sleep(0.005)
        self._turn_away(deadline)
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.close()
        self._turn_away(deadline)  # those who have come meanwhile
        local_upgrade, self._local_upgrade = self._local_upgrade, None
        if local_upgrade is not None:
            local_upgrade.close()

    def _turn_away(self, deadline: float) -> None:
        """Hang up on strangers, and wait until nobody waits for them any more."""
        while self._strangers and time.monotonic() < deadline:
            for transport in list(self._strangers):
                transport.close()
            time.sleep(0.005)

    def forget(self) -> None:
        """Let go of everything in a forked child, without ending it for the parent."""
        self._closed.set()
        self._lock = threading.Lock()  # of which the child may have no thread that lets it go
        for session in self._sessions.values():
            session.abandon()
        for transport in self._strangers:
            transport.abandon()
        self._sessions, self._strangers = {}, {}
        for listener in self._listeners:
            listener.forget()
        self._listeners, self._local_upgrade = [], None

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # A connection, in a thread of its own

    def _arrived(self, transport: Transport) -> None:
        self._make_room()
        with self._lock:
            self._strangers[transport] = False
        try:
            hello = self._introduced(transport)
        except (ConnectionLostError, ProtocolError):
            transport.close()
            return
        finally:
            with self._lock:
                del self._strangers[transport]
        try:
            if hello.session:
                self._resume(transport, hello)
            else:
                self._open(transport, hello)
        except _Refused as refused:
            refuse(transport, refused.reason, str(refused), refused.notes)
        except BaseException:
            transport.close()
            raise

    def _make_room(self) -> None:
        """Hang up on who has been silent for longest, if there are many: others need no time."""
        with self._lock:
            waiting = [each for each, is_hung_up in self._strangers.items() if not is_hung_up]
            late = waiting[: max(0, len(waiting) + 1 - _MOST_STRANGERS)]
            self._strangers.update(dict.fromkeys(late, True))
        for transport in late:
            transport.close()

    def _introduced(self, transport: Transport) -> Hello:
        hello, nonce = greeted(transport, time.monotonic() + _HANDSHAKE)
        try:
            self._check_hello(hello, nonce)
        except _Refused as refused:
            refuse(transport, refused.reason, str(refused))
            raise ConnectionLostError("refused") from refused
        return hello

    def _check_hello(self, hello: Hello, nonce: bytes) -> None:
        oldest, newest = VERSIONS
        if not oldest <= hello.version <= newest:
            raise _Refused(
                "version",
                f"version {hello.version} of the protocol was asked for, the server speaks "
                f"{oldest} to {newest}",
            )
        if not is_proven(self._token, nonce, hello.proof):
            problem = "the token is not the right one" if hello.proof else "a token is needed"
            raise _Refused("token", problem)
        if hello.num_envs is not None and not 1 <= hello.num_envs <= self._max_envs:
            raise _Refused(
                "num_envs", f"{hello.num_envs} slots were asked for, there may be {self._max_envs}"
            )
        if not hello.session and hello.name not in self._hosted:
            known = ", ".join(self._hosted)
            raise _Refused("name", f"there is no {hello.name!r}; there is {known}")

    def _resume(self, transport: Transport, hello: Hello) -> None:
        session = self._sessions.get(hello.session)
        if session is None or not session.attach(transport, hello.received):
            ending = self._endings.get(hello.session)
            if ending is None:
                raise _Refused("session", "the session is over, and its environments are gone")
            # Its farewell may have been lost with the connection.
            reason = "lease" if ending.reason == "lease" else "session"
            raise _Refused(reason, f"the server has ended the session: {ending.message}")

    def _open(self, transport: Transport, hello: Hello) -> None:
        """Begin a session, and stay with it."""
        hosted = self._hosted[hello.name]
        lease = self._leases.get(hello.name)
        claim = Claim(hello.client, hello.priority)
        with self._lock:
            if self._closed.is_set():
                raise _Refused("server", "the server was closed")
            if len(self._sessions) + self._opening >= self._max_sessions:
                raise _Refused("full", f"there are {self._max_sessions} sessions already")
            self._opening += 1
        try:
            try:
                if lease is not None:
                    _take(lease, claim)
                claim.session = self._begun(transport, hello, hosted)
            finally:
                with self._lock:
                    self._opening -= 1
            try:
                claim.session.run()
            finally:
                self._forget_session(claim.session)
        finally:
            if lease is not None:
                lease.release(claim)

    def _forget_session(self, session: Session) -> None:
        with self._lock:
            del self._sessions[session.identifier]
            if session.ending is not None:
                self._endings[session.identifier] = session.ending
            while len(self._endings) > _MOST_ENDINGS:
                del self._endings[next(iter(self._endings))]

    def _give_memory(self, key: bytes) -> int | None:
        session = self._sessions.get(key)
        return None if session is None else session.shared_memory()

    def _begun(self, transport: Transport, hello: Hello, hosted: Hosted) -> Session:
        try:
            arguments = unpack_values(hello.values) if hello.values else {}
            pool = open_pool(hosted, hello.num_envs, arguments)
            try:
                frontend = "" if self._local_upgrade is None else self._local_upgrade.name
                session = Session(
                    os.urandom(16), hosted, hello, pool, transport, self._rules, frontend
                )
            except BaseException:
                pool.close()
                raise
        except Exception as error:
            notes = getattr(error, "__notes__", ())
            raise _Refused("factory", f"{type(error).__name__}: {error}", notes) from error
        with self._lock:
            self._sessions[session.identifier] = session
        if self._closed.is_set():
            session.end("server", "the server was closed")
        return session


class _Refused(Exception):  # noqa: N818 - it is told, not raised
    """A client is not let in."""

    def __init__(self, reason: str, message: str, notes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.notes = notes


def _take(lease: Lease, claim: Claim) -> None:
    try:
        lease.acquire(claim, _TAKE_OVER)
    except HeldError as held:
        raise _Refused("lease", str(held)) from held


def _check_place(place: Address, token: str | None, tls: TLS | None) -> None:
    if place.name:
        raise ValueError(f"{place}: a server listens for all names, so leave {place.name!r} out")
    if place.is_encrypted and tls is None:
        raise ValueError(f"{place} needs tls=(certificate, key)")
    if not place.is_loopback and token is None and not place.is_encrypted:
        raise ValueError(
            f"{place} can be reached from other machines: give a token, or use TLS, or listen at "
            "127.0.0.1"
        )


def _check_rules(rules: Rules, max_sessions: int, max_envs: int) -> None:
    counts = {
        "max_sessions": max_sessions,
        "max_envs": max_envs,
        "max_inflight": rules.max_inflight,
        "max_meta": rules.max_meta,
    }
    for name, value in counts.items():
        if not 1 <= value < 2**32:
            raise ValueError(f"{name} must be a positive integer below 2**32, got {value!r}")
    if not rules.session_ttl >= 0:
        raise ValueError(f"session_ttl must not be negative, got {rules.session_ttl!r}")
