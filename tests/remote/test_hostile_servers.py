"""A client that receives invalid messages raises a connection error in time."""

import random
import sys
import threading
import time

import numpy as np
import pytest

import shoal
from shoal.errors import ProtocolError
from shoal.pools import InlinePool
from shoal.remote._wire import HEADER_BYTES, SOME_SLOTS, Kind
from shoal.testing import ProbeEnv
from tests.remote.mutations import mutated
from tests.remote.peers import wait_until
from tests.remote.proxy import RESPONSE, Proxy

ALLOWED = (ConnectionError, shoal.errors.ReceiveTimeoutError, shoal.errors.RemoteError)


class MutatingProxy(Proxy):
    """Changes random bytes of some messages of the server."""

    def __init__(self, port, seed, kinds):
        super().__init__(port)
        self._rng = random.Random(seed)
        self._kinds = kinds

    def rewrite(self, direction, header, message):
        if direction == RESPONSE and header.kind in self._kinds and self._rng.random() < 0.5:
            return mutated(self._rng, message)
        return message


KINDS = {
    "server hello": {Kind.SERVER_HELLO},
    "session info": {Kind.SESSION_INFO},
    "responses": {Kind.BATCH, Kind.REPLY, Kind.FAILURE, Kind.EXPECTED_DURATION},
}


def play_against(server, kinds, seed):
    proxy = MutatingProxy(int(server.url.rpartition(":")[2]), seed, KINDS[kinds])
    start_time = time.monotonic()
    try:
        with shoal.connect(f"{proxy.url}/it", timeout=0.4, shared_memory=False) as envs:
            envs.reset(seed=0)
            for _ in range(4):
                envs.step(envs.action_space.sample())
                envs.call("label")
    except ALLOWED:
        pass
    finally:
        proxy.close()
    return time.monotonic() - start_time


@pytest.fixture
def short_stall_timeout(monkeypatch):
    """Shorten the stall timeout."""
    monkeypatch.setattr(sys.modules["shoal.remote._transports.sockets"], "STALL_TIMEOUT", 0.5)


def test_timeout_inside_a_message():
    with shoal.serve({"it": lambda: InlinePool([ProbeEnv] * 2)}, "tcp://127.0.0.1:0") as server:
        proxy = WithholdingProxy(int(server.url.rpartition(":")[2]))
        envs = shoal.connect(f"{proxy.url}/it", timeout=0.5, shared_memory=False)
        timer = threading.Timer(4.0, proxy.close)
        timer.start()
        start_time = time.monotonic()
        with pytest.raises((ConnectionError, TimeoutError)):
            envs.reset(seed=0)
        assert time.monotonic() - start_time < 2.0
        timer.cancel()
        proxy.close()
        envs.close()


class WithholdingProxy(Proxy):
    """Withholds the second half of each response."""

    def rewrite(self, direction, header, message):
        if direction == RESPONSE and header.number:
            return message[: -header.body // 2]
        return message


class InvalidBooleanProxy(Proxy):
    """Replaces the first boolean of a batch by an invalid byte, after this many batches."""

    def __init__(self, port, after):
        super().__init__(port)
        self._left = after

    def rewrite(self, direction, header, message):
        if direction != RESPONSE or header.kind is not Kind.BATCH:
            return message
        self._left -= 1
        if self._left < 0:
            before = 2 if header.flags & SOME_SLOTS else 1  # columns: slots and rewards
            place = HEADER_BYTES + header.meta + before * header.rows * 8
            return message[:place] + bytes([7]) + message[place + 1 :]
        return message


@pytest.mark.parametrize("doing", ["reset", "step", "recv"])
def test_invalid_booleans_are_rejected(doing):
    with shoal.serve({"it": "CartPole-v1"}, "tcp://127.0.0.1:0") as server:
        proxy = InvalidBooleanProxy(int(server.url.rpartition(":")[2]), after=int(doing != "reset"))
        envs = shoal.connect(f"{proxy.url}/it", 2, timeout=5.0, shared_memory=False)
        actions = np.zeros(2, np.int64)
        try:
            if doing != "reset":
                envs.reset()
            if doing == "recv":
                envs.send(actions)
            with pytest.raises(ProtocolError, match="neither 0 nor 1"):
                getattr(envs, doing)(*[actions] * (doing == "step"))
            with pytest.raises(ConnectionError):
                envs.reset()
        finally:
            envs.close()
            proxy.close()


@pytest.mark.usefixtures("short_stall_timeout")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kinds", KINDS)
def test_mutated_messages_raise_connection_errors(kinds):
    with shoal.serve({"it": lambda: InlinePool([ProbeEnv] * 2)}, "tcp://127.0.0.1:0") as server:
        for seed in range(10):
            assert play_against(server, kinds, seed) < 5.0
        assert wait_until(lambda: server.sessions == 0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("short_stall_timeout")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kinds", KINDS)
def test_many_mutated_messages_raise_connection_errors(kinds):
    with shoal.serve({"it": lambda: InlinePool([ProbeEnv] * 2)}, "tcp://127.0.0.1:0") as server:
        for seed in range(100, 500):
            assert play_against(server, kinds, seed) < 10.0, seed
        assert wait_until(lambda: server.sessions == 0)
