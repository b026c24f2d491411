"""Authentication, and limits on sessions and slots."""

import hmac
import sys
import threading
import time
from contextlib import ExitStack, suppress
from functools import partial

import pytest

import shoal
from shoal.errors import AuthenticationError, RefusedError
from shoal.pools import InlinePool
from shoal.remote._messages import (
    ClientHello,
    Rejection,
    pack_message,
    unpack_message,
)
from shoal.remote._wire import HEADER_BYTES, Kind
from shoal.testing import ProbeEnv
from tests.remote.mutations import MAX_REJECT_MEMORY, peak_of
from tests.remote.peers import Raw, shoal_threads, wait_until
from tests.remote.proxy import rewriting
from tests.remote.serving import TCP, Factory, served


@pytest.mark.parametrize(
    ("token", "url"),
    [
        *((token, None) for token in (None, "", "wrong", "secret ", "Secret", "sécret")),
        (None, TCP),
        ("wrong", "ws://127.0.0.1:0"),
    ],
)
def test_wrong_token_is_rejected(token, url):
    factory = Factory()
    with served(factory, url, token="secret") as it:
        with pytest.raises(AuthenticationError, match="token") as caught:
            shoal.connect(it, token=token, timeout=5.0)
        assert isinstance(caught.value, PermissionError)
        assert "secret" not in str(caught.value)
        assert factory.calls == 0
        with shoal.connect(it, token="secret", timeout=5.0) as envs:
            envs.reset(seed=0)
        assert factory.calls == 1


def test_unknown_name_is_reported_only_after_authentication():
    with served(Factory(), TCP, token="secret") as it:
        with pytest.raises(AuthenticationError):
            shoal.connect(it.replace("/it", "/nothing"), timeout=5.0)
        with pytest.raises(RefusedError, match="does not host 'nothing'"):
            shoal.connect(it.replace("/it", "/nothing"), token="secret", timeout=5.0)


def test_resuming_requires_the_token():
    with shoal.serve({"it": Factory()}, TCP, token="secret") as server:
        envs = shoal.connect(f"{server.url}/it", token="secret", on_lost="resume", timeout=5.0)
        envs.reset(seed=0)
        session = envs.pool._dispatcher.link.info.session
        with Raw(server.url, name=None) as raw:
            raw.write(
                Kind.CLIENT_HELLO, pack_message(ClientHello(1, "it", session=session)), number=0
            )
            header, meta = raw.read()
            assert header.kind is Kind.REJECTION
            assert unpack_message(Rejection, meta).reason == "token"
        envs.reset(seed=0)
        envs.close()


def test_proof_cannot_be_replayed():
    """A recorded proof is useless, because every connection has its own nonce."""
    factory = Factory()
    with served(factory, TCP, token="secret") as it:
        with rewriting(it, {Kind.CLIENT_HELLO: {}}) as (proxy, url):
            shoal.connect(url, token="secret", timeout=5.0, shared_memory=False).close()
        hello = proxy.original[Kind.CLIENT_HELLO]
        assert unpack_message(ClientHello, hello[HEADER_BYTES:]).proof
        nonces = set()
        for _ in range(3):
            with Raw(it, name=None) as raw:
                nonces.add(raw.server_hello.nonce)
                raw.socket.sendall(hello)
                header, meta = raw.read()
                assert header.kind is Kind.REJECTION
                assert unpack_message(Rejection, meta).reason == "token"
                assert raw.is_disconnected()
        assert len(nonces) == 3
        assert factory.calls == 1


@pytest.mark.parametrize("token", ["secret", "wrong"])
def test_proofs_are_compared_in_constant_time(token, monkeypatch):
    compared = []
    compare = hmac.compare_digest

    def recorded(one, other):
        compared.append((one, other))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", recorded)
    with (
        served(Factory(), TCP, token="secret") as it,
        rewriting(it, {Kind.CLIENT_HELLO: {}}) as (proxy, url),
    ):
        with suppress(AuthenticationError):
            shoal.connect(url, token=token, timeout=5.0, shared_memory=False).close()
        proof = unpack_message(ClientHello, proxy.original[Kind.CLIENT_HELLO][HEADER_BYTES:]).proof
    ((expected, received),) = compared
    assert received == proof
    assert (expected == received) == (token == "secret")


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.7", "example.org"])
@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_public_address_requires_token_or_tls(host, scheme):
    with pytest.raises(ValueError, match="can be reached from other machines"):
        shoal.serve({"it": Factory()}, f"{scheme}://{host}:0")
    with pytest.raises(ValueError, match="can be reached from other machines"):
        shoal.serve({"it": Factory()}, ["inproc://never", f"{scheme}://{host}:0"])
    assert shoal.serve({"it": Factory()}, "inproc://never").close() is None


def test_public_address_with_token():
    with shoal.serve({"it": Factory()}, "tcp://0.0.0.0:0", token="secret") as server:
        port = server.url.rpartition(":")[2]
        shoal.connect(f"tcp://127.0.0.1:{port}/it", token="secret", timeout=5.0).close()


def test_empty_token_is_rejected():
    with pytest.raises(ValueError, match="token"):
        shoal.serve({"it": Factory()}, "tcp://0.0.0.0:0", token="").close()


def test_max_sessions():
    with served(Factory(), max_sessions=2) as it:
        first, second = shoal.connect(it), shoal.connect(it)
        with pytest.raises(RefusedError, match="2 sessions already"):
            shoal.connect(it)
        first.close()
        third = shoal.connect(it)
        for envs in (second, third):
            envs.reset(seed=0)
            envs.close()


def test_failing_factory_does_not_count_as_session():
    fails = [True]

    def factory():
        if fails[0]:
            raise OSError("no cell is free")
        return InlinePool([ProbeEnv])

    with served(factory, max_sessions=1) as it:
        for _ in range(3):
            with pytest.raises(RefusedError, match="OSError: no cell is free"):
                shoal.connect(it)
        fails[0] = False
        shoal.connect(it).close()


# Limits


def test_max_envs():
    made = []

    def factory(num_envs):
        made.append(num_envs)
        return InlinePool([ProbeEnv] * num_envs)

    with served(factory, max_envs=3) as it:
        for count in (4, 2**16, 2**40):
            with pytest.raises(RefusedError, match=f"{count} slots .* expected 1 to 3") as caught:
                shoal.connect(it, count, timeout=5.0)
            assert caught.value.reason == "num_envs"
        assert not made
        with shoal.connect(it, 3, timeout=5.0) as envs:
            assert envs.num_envs == 3
        assert made == [3]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("session_ttl", -1), ("session_ttl", -0.001), ("max_sessions", 0), ("max_inflight", 0)],
)
def test_invalid_server_options(setting, value):
    before = shoal_threads()
    with pytest.raises(ValueError, match=f"{setting} must .* got {value}"):
        shoal.serve({"it": Factory()}, TCP, **{setting: value})
    assert shoal_threads() == before


def test_session_ttl_of_zero():
    with (
        served(Factory(), session_ttl=0) as it,
        shoal.connect(it, timeout=5.0, on_lost="resume") as envs,
    ):
        envs.reset(seed=0)


# Connections without authentication


@pytest.fixture
def handshake_timeout(monkeypatch):
    """Set the seconds that a client has to authenticate."""
    return partial(monkeypatch.setattr, sys.modules["shoal.remote._server"], "_HANDSHAKE_TIMEOUT")


def test_silent_connection_is_closed(handshake_timeout):
    handshake_timeout(0.3)
    with shoal.serve({"it": Factory()}, TCP) as server, Raw(server.url, name=None) as raw:
        assert raw.is_disconnected(5.0)


def test_slow_hello_is_closed(handshake_timeout):
    handshake_timeout(0.5)
    with shoal.serve({"it": Factory()}, TCP) as server, Raw(server.url, name=None) as raw:
        message = raw.message(Kind.CLIENT_HELLO, b"x" * 60_000, number=0)
        raw.socket.sendall(message[:HEADER_BYTES])
        start_time = time.monotonic()
        is_closed = False
        try:
            while time.monotonic() - start_time < 5.0:
                raw.socket.sendall(b"x")
                time.sleep(0.05)
        except OSError:
            is_closed = True
        assert is_closed


def test_unauthenticated_connections_do_not_block_clients(handshake_timeout, monkeypatch):
    monkeypatch.setattr(sys.modules["shoal.remote._server"], "_MAX_UNAUTHENTICATED", 6)
    handshake_timeout(60.0)
    with served(Factory(), TCP) as it, ExitStack() as connections:
        first, *_, last = (connections.enter_context(Raw(it, name=None)) for _ in range(6))
        shoal.connect(it, timeout=20.0).close()
        # The oldest connection is closed to make room.
        assert first.is_disconnected()
        assert not last.is_disconnected(0.1)


@pytest.mark.parametrize(
    "overrides",
    [{"meta": (1 << 16) + 1}, {"meta": 2**32 - 1}, {"body": 1}, {"body": 2**63}, {"number": 1}],
    ids=str,
)
def test_oversized_hello_is_closed_before_allocation(overrides):
    hello = pack_message(ClientHello(1, "it"))
    factory = Factory()
    with shoal.serve({"it": factory}, TCP) as server, Raw(server.url, name=None) as raw:

        def send_hello():
            raw.write(Kind.CLIENT_HELLO, hello, number=0, overrides=overrides)
            assert raw.is_disconnected(5.0)  # without waiting for the rest of the message

        assert peak_of(send_hello) < MAX_REJECT_MEMORY
        assert factory.calls == 0


def test_oversized_client_ready_is_closed_before_allocation():
    with served(Factory(), TCP) as it, Raw(it, name=None) as raw:
        raw.write(Kind.CLIENT_HELLO, pack_message(ClientHello(1, "it")), number=0)
        assert raw.read()[0].kind is Kind.SESSION_INFO

        def send_ready():
            raw.write(Kind.CLIENT_READY, number=0, overrides={"meta": 2**32 - 1})
            assert raw.is_disconnected(5.0)

        assert peak_of(send_ready) < MAX_REJECT_MEMORY


def test_closing_a_server_ends_all_threads():
    before = threading.active_count()
    with shoal.serve({"it": Factory()}, TCP, token="secret") as server:
        for token in (None, "wrong", "secret"):
            try:
                shoal.connect(f"{server.url}/it", token=token, timeout=5.0).close()
            except AuthenticationError:
                continue
    assert wait_until(lambda: threading.active_count() <= before)
