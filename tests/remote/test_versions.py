"""Compatibility of protocol versions."""

import pytest

import shoal
from shoal.errors import RefusedError
from shoal.remote._messages import (
    ClientHello,
    Rejection,
    ServerHello,
    pack_message,
    unpack_message,
)
from shoal.remote._wire import HEADER_BYTES, Kind, read_header
from tests.remote.peers import Raw, fake_server, unnumbered_message
from tests.remote.proxy import rewriting
from tests.remote.serving import TCP, Factory, served


@pytest.mark.parametrize("versions", [(2, 3), (0, 0)])
def test_incompatible_server_version(versions):
    hello_message = unnumbered_message(Kind.SERVER_HELLO, ServerHello(*versions, b"n" * 32))
    with (
        fake_server(hello_message) as (url, received),
        pytest.raises(RefusedError, match=f"versions {versions[0]} to {versions[1]}"),
    ):
        shoal.connect(url, timeout=5.0, token="secret")
    assert received in ([], [b""])  # nothing was sent to it


@pytest.mark.parametrize("versions", [(1, 3), (0, 1), (0, 9)])
def test_newest_common_version_is_used(versions):
    hello_message = unnumbered_message(Kind.SERVER_HELLO, ServerHello(*versions, b"n" * 32))
    rejection = unnumbered_message(Kind.REJECTION, Rejection("full", "come back later"))
    with fake_server(hello_message, rejection) as (url, received):
        with pytest.raises(RefusedError, match="come back later"):
            shoal.connect(url, timeout=5.0)
        hello = unpack_message(ClientHello, received[0][HEADER_BYTES:])
        assert read_header(received[0]).kind is Kind.CLIENT_HELLO
        assert hello.version == 1


@pytest.mark.parametrize("version", [0, 2, 9])
def test_incompatible_client_version(version):
    factory = Factory()
    with shoal.serve({"it": factory}, TCP) as server:
        with Raw(server.url, name=None) as raw:
            assert (raw.server_hello.oldest, raw.server_hello.newest) == (1, 1)
            raw.write(Kind.CLIENT_HELLO, pack_message(ClientHello(version, "it")), number=0)
            header, meta = raw.read()
            assert header.kind is Kind.REJECTION
            rejection = unpack_message(Rejection, meta)
            assert rejection.reason == "version"
            assert f"version {version}" in rejection.message
            assert raw.is_disconnected()
        assert factory.calls == 0


NEWS = {"news": [1, {"of": None}, "a later version"]}


@pytest.mark.parametrize(
    "kind", [Kind.SERVER_HELLO, Kind.CLIENT_HELLO, Kind.SESSION_INFO, Kind.CLIENT_READY]
)
@pytest.mark.parametrize("on_lost", ["raise", "resume"])
def test_unknown_fields_are_ignored(kind, on_lost):
    """So later versions can add fields."""
    with served(Factory(), TCP, token="secret") as it, rewriting(it, {kind: NEWS}) as (proxy, url):
        with shoal.connect(url, token="secret", timeout=5.0, on_lost=on_lost) as envs:
            envs.reset(seed=0)
            for _ in range(3):
                envs.step(envs.action_space.sample())
        assert kind in proxy.original


@pytest.mark.parametrize(
    ("requested", "shared"),
    [
        (("shared memory", "telepathy"), ("shared memory",)),
        (("telepathy",), ()),
        ((), ()),
    ],
)
def test_common_capabilities(requested, shared):
    with served(Factory(), TCP) as it, Raw(it, capabilities=requested) as raw:
        assert raw.info.capabilities == shared
        assert bool(raw.info.local_upgrade) == ("shared memory" in shared)


def test_server_without_shared_memory():
    changes = {Kind.SESSION_INFO: {"capabilities": ["telepathy"]}}
    with served(Factory(), TCP) as it:
        with rewriting(it, changes) as (_, url), shoal.connect(url, timeout=5.0) as envs:
            envs.reset(seed=0)
            assert "shared memory" not in envs.stats().transport
        with shoal.connect(it, timeout=5.0) as envs:
            assert envs.stats().transport.endswith(", shared memory")
