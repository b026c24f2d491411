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
from tests.remote.peers import Raw, fake_server, plain
from tests.remote.proxy import retold
from tests.remote.serving import TCP, Factory, served


@pytest.mark.parametrize("versions", [(2, 3), (0, 0)])
def test_incompatible_server_version(versions):
    greeting = plain(Kind.SERVER_HELLO, ServerHello(*versions, b"n" * 32))
    with (
        fake_server(greeting) as (url, heard),
        pytest.raises(RefusedError, match=f"versions {versions[0]} to {versions[1]}"),
    ):
        shoal.connect(url, timeout=5.0, token="secret")
    assert heard in ([], [b""])  # nothing was sent to it


@pytest.mark.parametrize("versions", [(1, 3), (0, 1), (0, 9)])
def test_newest_common_version_is_used(versions):
    greeting = plain(Kind.SERVER_HELLO, ServerHello(*versions, b"n" * 32))
    refusal = plain(Kind.REJECTION, Rejection("full", "come back later"))
    with fake_server(greeting, refusal) as (url, heard):
        with pytest.raises(RefusedError, match="come back later"):
            shoal.connect(url, timeout=5.0)
        hello = unpack_message(ClientHello, heard[0][HEADER_BYTES:])
        assert read_header(heard[0]).kind is Kind.CLIENT_HELLO
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
            refusal = unpack_message(Rejection, meta)
            assert refusal.reason == "version"
            assert f"version {version}" in refusal.message
            assert raw.is_hung_up()
        assert factory.calls == 0


NEWS = {"news": [1, {"of": None}, "a later version"]}


@pytest.mark.parametrize(
    "kind", [Kind.SERVER_HELLO, Kind.CLIENT_HELLO, Kind.SESSION_INFO, Kind.CLIENT_READY]
)
@pytest.mark.parametrize("on_lost", ["raise", "resume"])
def test_unknown_fields_are_ignored(kind, on_lost):
    """So later versions can add fields."""
    with served(Factory(), TCP, token="secret") as it, retold(it, {kind: NEWS}) as (proxy, url):
        with shoal.connect(url, token="secret", timeout=5.0, on_lost=on_lost) as envs:
            envs.reset(seed=0)
            for _ in range(3):
                envs.step(envs.action_space.sample())
        assert kind in proxy.heard


@pytest.mark.parametrize(
    ("told", "shared"),
    [
        (("shared memory", "telepathy"), ("shared memory",)),
        (("telepathy",), ()),
        ((), ()),
    ],
)
def test_common_capabilities(told, shared):
    with served(Factory(), TCP) as it, Raw(it, capabilities=told) as raw:
        assert raw.info.capabilities == shared
        assert bool(raw.info.local_upgrade) == ("shared memory" in shared)


def test_server_without_shared_memory():
    changes = {Kind.SESSION_INFO: {"capabilities": ["telepathy"]}}
    with served(Factory(), TCP) as it:
        with retold(it, changes) as (_, url), shoal.connect(url, timeout=5.0) as envs:
            envs.reset(seed=0)
            assert "shared memory" not in envs.stats().transport
        with shoal.connect(it, timeout=5.0) as envs:
            assert envs.stats().transport.endswith(", shared memory")
