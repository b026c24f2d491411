"""Websockets: without the package, and with clients that do not read."""

import sys
import threading
import time
from contextlib import contextmanager
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from websockets.sync.client import connect

import shoal
from shoal.errors import MissingExtraError
from shoal.pools import InlinePool
from shoal.remote._messages import CallRequest, ClientHello, ClientReady, pack_message
from shoal.remote._value_codec import pack_values
from shoal.remote._wire import Kind, read_header
from tests.remote.peers import Raw, shoal_threads, unnumbered_message, wait_until
from tests.remote.serving import Factory, named

WS = "ws://127.0.0.1:0"


# Without the package


@pytest.fixture
def without_websockets(monkeypatch):
    """Simulate that the package is not installed."""
    module = "shoal.remote._transports.websocket"
    for name in [name for name in sys.modules if name.split(".")[0] == "websockets"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "websockets", None)
    monkeypatch.delitem(sys.modules, module, raising=False)
    yield
    sys.modules.pop(module, None)


def assert_names_the_extra(error):
    assert 'pip install "shoal[remote]"' in str(error)
    assert "websockets is not installed" in str(error)
    assert "\n" not in str(error)
    assert isinstance(error, ImportError)
    assert not isinstance(error, ConnectionError)  # a retry would not help


@pytest.mark.usefixtures("without_websockets")
@pytest.mark.parametrize("on_lost", ["raise", "resume", "truncate"])
@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_client_without_websockets_package(scheme, on_lost):
    with pytest.raises(MissingExtraError) as caught:
        shoal.connect(f"{scheme}://127.0.0.1:1/it", timeout=5.0, on_lost=on_lost)
    assert_names_the_extra(caught.value)


@pytest.mark.usefixtures("without_websockets")
@pytest.mark.parametrize("places", [WS, ["tcp://127.0.0.1:0", WS]], ids=["alone", "as the second"])
def test_server_without_websockets_package(places):
    before = shoal_threads()
    with pytest.raises(MissingExtraError) as caught:
        shoal.serve({"it": Factory()}, places)
    assert_names_the_extra(caught.value)
    assert wait_until(lambda: shoal_threads() == before), shoal_threads()


@pytest.mark.usefixtures("without_websockets")
def test_other_transports_work_without_websockets_package():
    with (
        shoal.serve({"it": Factory()}, "tcp://127.0.0.1:0") as server,
        shoal.connect(f"{server.url}/it", timeout=5.0) as envs,
    ):
        envs.reset(seed=0)


# Clients that do not read


class LongText(gymnasium.Env):
    """Returns long strings, and counts them."""

    observation_space = spaces.Box(0, 1e6, (), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, calls):
        self._calls = calls

    def reset(self, *, seed=None, options=None):
        return np.float64(0), {}

    def step(self, action):
        return np.float64(1), 0.0, False, False, {}

    def long_text(self):
        self._calls.append(threading.current_thread().name)
        return bytes(TEXT_BYTES)


TEXT_BYTES, NUM_REQUESTS = 4_000_000, 60


@contextmanager
def unread_client(url):
    """A client that has sent many requests and reads no response."""
    settings = {"compression": None, "max_size": None, "close_timeout": 0.1, "proxy": None}
    call = pack_message(CallRequest("long_text", False, (0,), pack_values([[], {}])))
    with connect(url, max_queue=1, **settings) as client:
        client.recv(5.0)
        client.send(unnumbered_message(Kind.CLIENT_HELLO, ClientHello(1, "it")))
        assert read_header(client.recv(5.0)).kind is Kind.SESSION_INFO
        client.send(unnumbered_message(Kind.CLIENT_READY, ClientReady(False)))
        for number in range(1, NUM_REQUESTS + 1):
            client.send(Raw.message(None, Kind.CALL, call, number=number))
        yield


def is_blocked(calls):
    """Whether the server has stopped to process requests that remain."""
    count = len(calls)
    time.sleep(0.3)
    return 0 < count == len(calls)


@pytest.mark.slow
def test_client_that_stops_reading_is_disconnected(monkeypatch):
    monkeypatch.setattr(sys.modules["shoal.remote._session"], "STALL_TIMEOUT", 3.0)
    calls = []
    factory = partial(InlinePool, [partial(LongText, calls)] * 2)
    with shoal.serve({"it": factory}, [WS, "tcp://127.0.0.1:0"]) as server:
        others = [shoal.connect(named(url, "it"), timeout=20.0) for url in server.urls]
        for other in others:
            other.reset(seed=0)
        with unread_client(server.url):
            assert wait_until(partial(is_blocked, calls), 10.0)
            count = len(calls)
            for other in others:
                for _ in range(10):
                    other.step(np.zeros(2, np.int64))
            with shoal.connect(named(server.url, "it"), timeout=20.0) as newcomer:
                newcomer.reset(seed=0)
            assert len(calls) == count < NUM_REQUESTS  # blocked all the time
            assert wait_until(lambda: server.sessions == 2, 30.0)
        for other in others:
            other.step(np.zeros(2, np.int64))
            other.close()
