"""Shared memory: access, fallback to the socket, and corrupted content."""

import fcntl
import gc
import os
import socket
import sys
import threading
import time
import warnings
from contextlib import closing, contextmanager
from copy import deepcopy
from functools import partial

import numpy as np
import pytest

import shoal
from shoal.errors import ReceiveTimeoutError
from shoal.remote._messages import ClientReady, unpack_message
from shoal.remote._transports.shared_memory import LocalUpgrade, fetch_memory, make_memory
from shoal.remote._wire import HEADER_BYTES, Kind
from shoal.testing import assert_identical
from tests.remote.peers import wait_until
from tests.remote.proxy import retold
from tests.remote.serving import TCP, Factory, served

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shared memory is Linux's")


# Access


def test_shared_memory_is_sealed():
    """Shrinking the memory would kill the server with SIGBUS."""
    descriptor, memory = make_memory(1 << 18)
    try:
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 0)
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 1 << 24)
    finally:
        del memory
        os.close(descriptor)


def test_local_upgrade_requires_a_session_key():
    with shoal.serve({"it": Factory()}, TCP) as server:
        envs = shoal.connect(f"{server.url}/it", timeout=5.0)
        envs.reset(seed=0)
        frontend = envs.pool._dispatcher.link.info.local_upgrade
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as visitor:
            visitor.settimeout(3.0)
            visitor.connect("\0" + frontend)
            visitor.sendall(b"k" * 16)
            data, descriptors, _, _ = socket.recv_fds(visitor, 1, 1)
            assert (data, descriptors) == (b"", [])
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as visitor:
            visitor.connect("\0" + frontend)  # and sends nothing
            begun = time.monotonic()
            other = shoal.connect(f"{server.url}/it", timeout=10.0)
            other.reset(seed=0)
            assert time.monotonic() - begun < 4.0
            other.close()
        envs.close()


# Fallback to the socket


def rollout(envs, steps=20, before_step=lambda step: None):
    """Return copies of all results of a rollout."""
    shown = [deepcopy(envs.reset(seed=3))]
    for step in range(steps):
        before_step(step)
        shown.append(deepcopy(envs.step(np.arange(2) % 2)))
    return shown


def rolled_out_here():
    with shoal.make("CartPole-v1", 2) as envs:
        return rollout(envs)


def goes_over(proxy):
    """Whether a client has switched to shared memory."""
    return unpack_message(ClientReady, proxy.heard[Kind.CLIENT_READY][HEADER_BYTES:]).is_shared


@contextmanager
def without_a_word(capfd):
    """Check that there are no warnings and no output."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    assert capfd.readouterr() == ("", "")


DOORS = {
    "it is there": ({}, True),
    "another machine": ({"local_upgrade": "shoal-nowhere"}, False),
    "a machine without one": ({"local_upgrade": ""}, False),
    "a name that is none": ({"local_upgrade": "x" * 200}, False),
    "a ring of nothing": ({"ring": 0}, False),
    "a ring of less than nothing": ({"ring": -4096}, False),
    "a ring of too much": ({"ring": 2**40}, False),
    "another ring": ({"ring": 1 << 19}, False),
}


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("frontend", DOORS)
def test_socket_is_used_without_local_upgrade(frontend, on_lost, capfd):
    changes, is_shared = DOORS[frontend]
    with (
        served("CartPole-v1", TCP) as it,
        retold(it, {Kind.SESSION_INFO: changes, Kind.CLIENT_READY: {}}) as (proxy, url),
        without_a_word(capfd),
    ):
        with shoal.connect(url, 2, timeout=5.0, on_lost=on_lost) as envs:
            assert_identical(rollout(envs), rolled_out_here())
        assert proxy.connections == 1
        assert goes_over(proxy) is is_shared


# Invalid memory


CAPACITY = 1 << 18


def block(*seals, size=None):
    """Return the descriptor of a memory block with these seals."""
    whole, memory = make_memory(CAPACITY)
    del memory
    size = os.fstat(whole).st_size if size is None else size
    os.close(whole)
    made = os.memfd_create("shoal-rings", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(made, size)
    for seal in seals:
        fcntl.fcntl(made, fcntl.F_ADD_SEALS, getattr(fcntl, f"F_SEAL_{seal}"))
    return made


def plain_file():
    made = os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
    os.ftruncate(made, 1 << 20)
    return made


BOTH = ("SHRINK", "GROW")
BLOCKS = {
    "sealed": (partial(block, *BOTH), True),
    "sealed for good": (partial(block, *BOTH, "SEAL"), True),
    "not sealed": (block, False),
    "free to shrink": (partial(block, "GROW"), False),
    "free to grow": (partial(block, "SHRINK"), False),
    "too small": (partial(block, *BOTH, size=4096), False),
    "too large": (partial(block, *BOTH, size=1 << 22), False),
    "empty": (partial(block, *BOTH, size=0), False),
    "read only": (partial(block, *BOTH, "WRITE"), False),
    "a file": (plain_file, False),
    "a socket": (lambda: socket.socket().detach(), False),
    "nothing": (lambda: None, False),
}


@pytest.mark.parametrize("what", BLOCKS)
def test_client_accepts_only_sealed_memory(what):
    """A server that shrinks the memory could kill the client with SIGBUS."""
    make, is_taken = BLOCKS[what]
    descriptors = len(os.listdir("/proc/self/fd"))
    with closing(LocalUpgrade(lambda key: make() if key == b"k" * 16 else None)) as frontend:
        memory = fetch_memory(frontend.name, b"k" * 16, CAPACITY)
        assert (memory is not None) is is_taken
        assert fetch_memory(frontend.name, b"x" * 16, CAPACITY) is None
    del memory
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= descriptors


def test_socket_is_used_if_memory_is_not_sealed(monkeypatch, capfd):
    def unsealed(capacity):
        sealed, memory = make_memory(capacity)
        os.close(sealed)
        return block(size=len(memory)), memory

    monkeypatch.setattr(sys.modules["shoal.remote._session"], "make_memory", unsealed)
    with (
        served("CartPole-v1", TCP) as it,
        retold(it, {Kind.CLIENT_READY: {}}) as (proxy, url),
        without_a_word(capfd),
    ):
        with shoal.connect(url, 2, timeout=5.0) as envs:
            assert_identical(rollout(envs), rolled_out_here())
        assert not goes_over(proxy)


# Corrupted memory

WORDS = {
    "written by the server": 0,
    "read by the client": 64,
    "written by the client": 128,
    "read by the server": 192,
}
"""Offsets of the counters of both rings; see native/remote/ring_pipe.cpp."""


@pytest.fixture
def memories(monkeypatch):
    """The blocks that a server shares with its clients; the newest one is the last."""
    kept = []

    def noted(capacity):
        descriptor, memory = make_memory(capacity)
        kept.append(memory)
        return descriptor, memory

    monkeypatch.setattr(sys.modules["shoal.remote._session"], "make_memory", noted)
    yield kept
    kept.clear()


@contextmanager
def undisturbed(it):
    """Check that another client of the server is not affected, and that no thread fails."""
    told = []
    hook, threading.excepthook = threading.excepthook, lambda args: told.append(args.exc_value)
    try:
        with shoal.connect(it, 2, timeout=10.0) as other:
            other.reset(seed=3)
            yield
            other.step(np.arange(2) % 2)
        with shoal.connect(it, 2, timeout=10.0) as newcomer:
            assert_identical(rollout(newcomer), rolled_out_here())
    finally:
        threading.excepthook = hook
    assert not told, told


def put(memory, place, value):
    memory[place : place + 8].view(np.uint64)[0] = value


@pytest.mark.parametrize("value", [2**64 - 1, 2**63, 2**40])
@pytest.mark.parametrize("word", WORDS)
def test_invalid_counters_end_the_connection(word, value, memories):
    with shoal.serve({"it": "CartPole-v1"}, TCP) as server:
        it = f"{server.url}/it"
        with undisturbed(it):
            envs = shoal.connect(it, 2, timeout=10.0)
            rollout(envs, 3)
            begun = time.monotonic()
            put(memories[-1], WORDS[word], value)
            with pytest.raises(ConnectionError):
                envs.step(np.zeros(2, np.int64))
            with pytest.raises(ConnectionError):
                envs.reset()
            envs.close()
            assert time.monotonic() - begun < 8.0  # less than the timeout
            assert wait_until(lambda: server.sessions == 1)


@pytest.mark.parametrize("word", WORDS)
def test_session_resumes_after_invalid_counters(word, memories):
    def change(step):
        if step in (5, 6, 13):
            put(memories[-1], WORDS[word], 2**63)

    with served("CartPole-v1", TCP) as it:
        with shoal.connect(it, 2, timeout=10.0, on_lost="resume") as envs:
            assert_identical(rollout(envs, before_step=change), rolled_out_here())
            assert envs.stats().reconnects == 3
        assert len(memories) == 4


def spoil(envs, memory, seed):
    """Step, and change a byte or a counter of the rings before each step."""
    rng = np.random.default_rng(seed)
    for _ in range(1000):
        if seed % 2:
            memory[rng.integers(0, 448)] = rng.integers(0, 256)
        else:
            place = list(WORDS.values())[rng.integers(4)]
            count = int(memory[place : place + 8].view(np.uint64)[0])
            put(memory, place, (count + int(rng.integers(-200, 200))) % 2**64)
        envs.step(np.zeros(2, np.int64))


@pytest.mark.parametrize("seed", range(8))
def test_corrupted_memory_is_an_error_of_the_client(
    seed, memories
):
    """Includes plausible but wrong counters, which repeat old bytes or block the reader."""
    with served("CartPole-v1", TCP) as it, undisturbed(it):
        envs = shoal.connect(it, 2, timeout=1.0)
        rollout(envs, 3)
        begun = time.monotonic()
        with pytest.raises((ConnectionError, ReceiveTimeoutError)):
            spoil(envs, memories[-1], seed)
        envs.close()
        assert time.monotonic() - begun < 15.0
