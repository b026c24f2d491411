"""Clients that use too much memory, time or slots of a server."""

import base64
import itertools
import socket
import struct
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import shoal
from shoal.pools import InlinePool
from shoal.remote import Hosted
from shoal.remote._messages import (
    ClientHello,
    Rejection,
    ResetRequest,
    SessionEnded,
    pack_message,
    unpack_message,
)
from shoal.remote._value_codec import pack_values
from shoal.remote._wire import Kind
from tests.remote.peers import Cell, Raw, wait_until
from tests.remote.serving import TCP, Factory, served

SERVER = sys.modules["shoal.remote._server"]
CHANNEL = sys.modules["shoal.remote._channel"]
WS = "ws://127.0.0.1:0"
CHUNK = 1 << 20
"""Largest websocket message in bytes."""


def reset_request(count):
    return pack_message(ResetRequest(tuple(range(count)), pack_values([[None] * count, None])))


# Websockets


def frame(size, *, is_last=True, is_first=True, data=b""):
    """The start of a websocket message of this size."""
    kind = (0x80 if is_last else 0) | (0x2 if is_first else 0)
    return bytes([kind, 0x80 | 127]) + struct.pack(">Q", size) + bytes(4) + data


@contextmanager
def unauthenticated_websocket(url):
    """A raw websocket connection without authentication."""
    raw = Raw.__new__(Raw)
    raw.socket = socket.create_connection(
        ("127.0.0.1", int(url.rpartition("/")[0].rpartition(":")[2])), 10.0
    )
    key = base64.b64encode(b"0" * 16).decode()
    raw.socket.sendall(
        "\r\n".join(
            [
                "GET / HTTP/1.1",
                "Host: it",
                "Upgrade: websocket",
                "Connection: Upgrade",
                f"Sec-WebSocket-Key: {key}",
                "Sec-WebSocket-Version: 13",
                "\r\n",
            ]
        ).encode()
    )
    assert raw.socket.recv(1 << 12).startswith(b"HTTP/1.1 101")
    with raw:
        yield raw


def fragments():
    yield frame(CHUNK, is_last=False, data=bytes(CHUNK))
    yield frame(CHUNK, is_first=False, is_last=False)


OVERSIZED = {
    "one frame": lambda: [frame(1 << 40)],
    "one byte too large": lambda: [frame(CHUNK + 1)],
    "in fragments": fragments,
}


@pytest.mark.parametrize("how", OVERSIZED)
def test_oversized_websocket_message_is_closed(how):
    factory = Factory()
    with served(factory, WS, token="secret") as url:
        with unauthenticated_websocket(url) as raw:
            for part in OVERSIZED[how]():
                raw.socket.sendall(part)
            assert raw.is_disconnected()  # long before the handshake timeout
        with shoal.connect(url, token="secret", timeout=10.0) as envs:
            envs.reset(seed=0)
        assert factory.calls == 1


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1"])
def test_browser_origins_are_rejected(origin):
    with served(Factory(), WS) as url:
        place = url.rpartition("/")[0]
        with pytest.raises(InvalidStatus, match="403"):
            connect(place, origin=origin, proxy=None)
        with connect(place, proxy=None) as allowed:
            assert allowed.recv(10.0)


# Endless input


def repeats(raw):
    """The same message again and again."""
    message = raw.message(Kind.HEARTBEAT, number=1) * 100
    while True:
        yield message, 0.0


def trickle(raw):
    """A long message, byte by byte."""
    yield raw.message(Kind.RESET, overrides={"meta": 1 << 20}), 0.0
    while True:
        yield b"x", 0.01


def repeated_trickle(raw):
    """A long duplicate message, byte by byte."""
    yield raw.message(Kind.RESET, number=1, overrides={"meta": 1 << 20}), 0.0
    while True:
        yield b"x", 0.01


@contextmanager
def feeding(url, feed):
    """An owner that sends until it is disconnected."""
    raw = Raw(url, num_envs=3)
    raw.write(Kind.RESET, reset_request(3))
    raw.last_response()
    is_over = threading.Event()

    def run():
        with suppress(OSError):
            for data, pause in feed(raw):
                raw.socket.sendall(data)
                if is_over.wait(pause):
                    return

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        raw.close()
        thread.join(10.0)


@pytest.mark.parametrize("feed", [repeats, trickle, repeated_trickle])
def test_endless_input_does_not_block_takeover(feed, monkeypatch):
    monkeypatch.setattr(SERVER, "_TAKEOVER_TIMEOUT", 1.0)
    with (
        served(Hosted(Cell, exclusive=True, lease=60.0), TCP) as url,
        feeding(url, feed),
        shoal.connect(url, priority=1, timeout=20.0) as envs,
    ):
        envs.reset()
        assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]


@pytest.mark.parametrize("feed", [repeats, trickle, repeated_trickle])
def test_endless_input_does_not_block_server_close(feed, monkeypatch):
    monkeypatch.setattr(SERVER, "_CLOSE_TIMEOUT", 2.0)
    cell = Cell()
    server = shoal.serve({"it": lambda: cell}, TCP)
    with feeding(f"{server.url}/it", feed):
        start_time = time.monotonic()
        server.close()
        assert time.monotonic() - start_time < 10.0
        assert wait_until(lambda: cell.is_closed == 1)


@pytest.mark.parametrize("overrides", [{"body": 1 << 62}, {"meta": 1 << 31}, {"body": 1 << 27}])
def test_oversized_duplicate_ends_the_session(overrides):
    with served(Cell, TCP) as url, Raw(url, num_envs=3) as raw:
        raw.write(Kind.RESET, reset_request(3))
        raw.last_response()
        raw.write(Kind.RESET, number=1, overrides=overrides)
        header, meta = raw.last_response()
        assert header.kind is Kind.SESSION_ENDED
        assert unpack_message(SessionEnded, meta).reason == "protocol"
        assert raw.is_disconnected()


# Messages that are kept for retransmission


class Wide(gymnasium.Env):
    observation_space = spaces.Box(0, 255, (1 << 14,), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1 << 14, np.uint8), {}

    def step(self, action):
        return np.zeros(1 << 14, np.uint8), 0.0, False, False, {}


@pytest.mark.parametrize(
    ("limit", "most"), [("_MAX_UNACKNOWLEDGED", 64), ("_MAX_UNACKNOWLEDGED_BYTES", 1 << 20)]
)
def test_session_ends_without_acknowledgements(limit, most, monkeypatch):
    monkeypatch.setattr(CHANNEL, limit, most)
    with (
        served(lambda: InlinePool([Wide]), TCP, max_inflight=4) as url,
        Raw(url, num_envs=1, resumable=True) as raw,
    ):
        raw.write(Kind.RESET, reset_request(1))
        raw.last_response()
        for _ in range(65):
            raw.write(Kind.STEP, body=bytes(8), rows=1, flags=2)
            header, meta = raw.last_response()
            if header.kind is Kind.SESSION_ENDED:
                break
        assert "does not acknowledge messages" in unpack_message(SessionEnded, meta).message


class Paced(gymnasium.Env):
    """Waits until its client has received all but the newest responses."""

    observation_space = spaces.Box(0, 1e9, (), np.float64)
    action_space = spaces.Discrete(2)
    received = None
    """Return the number of messages that the client has received."""

    def __init__(self, answered):
        self._answered = answered

    def _next(self):
        answered = next(self._answered)
        assert wait_until(lambda: Paced.received() >= answered - 200, 60.0)
        return np.float64(answered)

    def reset(self, *, seed=None, options=None):
        return self._next(), {}

    def step(self, action):
        return self._next(), 0.0, False, False, {}


@pytest.mark.parametrize("count", [1500, pytest.param(20_000, marks=pytest.mark.slow)])
def test_receiving_client_acknowledges(count, monkeypatch):
    if count < 16_000:  # larger counts reach the real limit
        monkeypatch.setattr(CHANNEL, "_MAX_UNACKNOWLEDGED", 600)
    factories = [partial(Paced, itertools.count())] * count
    with (
        served(lambda: InlinePool(factories), TCP) as url,
        shoal.connect(url, on_lost="resume", timeout=100.0, shared_memory=False) as envs,
    ):
        channel = envs.pool._dispatcher.link._channel
        monkeypatch.setattr(Paced, "received", lambda: channel.received)
        envs.reset()
        envs.pool.send(np.zeros(count, np.int64))
        assert sorted(envs.pool.recv().observations) == list(range(count, 2 * count))
        assert channel.received == 2 * count  # one message per slot


# Slots


def test_num_envs_cannot_be_passed_as_argument():
    factory = partial(shoal.make, "CartPole-v1")
    with served(lambda num_envs=1: factory(num_envs), TCP, max_envs=8) as url:
        with Raw(url, name=None) as raw:
            hello = ClientHello(1, "it", values=pack_values({"num_envs": 2000}))
            raw.write(Kind.CLIENT_HELLO, pack_message(hello), number=0)
            header, meta = raw.read()
        assert header.kind is Kind.REJECTION
        assert "num_envs is not an argument" in unpack_message(Rejection, meta).message
        with shoal.connect(url, 8, timeout=10.0) as envs:
            assert envs.num_envs == 8
