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
from tests.remote.proxy import rewriting
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
        upgrade = envs.pool._dispatcher.link.info.local_upgrade
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
            connection.settimeout(3.0)
            connection.connect("\0" + upgrade)
            connection.sendall(b"k" * 16)
            data, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
            assert (data, descriptors) == (b"", [])
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
            connection.connect("\0" + upgrade)  # and sends nothing
            start_time = time.monotonic()
            other = shoal.connect(f"{server.url}/it", timeout=10.0)
            other.reset(seed=0)
            assert time.monotonic() - start_time < 4.0
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


def local_rollout():
    with shoal.make("CartPole-v1", 2) as envs:
        return rollout(envs)


def uses_shared_memory(proxy):
    """Whether a client has switched to shared memory."""
    return unpack_message(ClientReady, proxy.original[Kind.CLIENT_READY][HEADER_BYTES:]).is_shared


@contextmanager
def no_output(capfd):
    """Check that there are no warnings and no output."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    assert capfd.readouterr() == ("", "")


UPGRADES = {
    "available": ({}, True),
    "another machine": ({"local_upgrade": "shoal-nowhere"}, False),
    "not offered": ({"local_upgrade": ""}, False),
    "an invalid name": ({"local_upgrade": "x" * 200}, False),
    "capacity 0": ({"ring": 0}, False),
    "negative capacity": ({"ring": -4096}, False),
    "excessive capacity": ({"ring": 2**40}, False),
    "another capacity": ({"ring": 1 << 19}, False),
}


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("upgrade", UPGRADES)
def test_socket_is_used_without_local_upgrade(upgrade, on_lost, capfd):
    changes, is_shared = UPGRADES[upgrade]
    with (
        served("CartPole-v1", TCP) as it,
        rewriting(it, {Kind.SESSION_INFO: changes, Kind.CLIENT_READY: {}}) as (proxy, url),
        no_output(capfd),
    ):
        with shoal.connect(url, 2, timeout=5.0, on_lost=on_lost) as envs:
            assert_identical(rollout(envs), local_rollout())
        assert proxy.connections == 1
        assert uses_shared_memory(proxy) is is_shared


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
    "sealed completely": (partial(block, *BOTH, "SEAL"), True),
    "not sealed": (block, False),
    "can shrink": (partial(block, "GROW"), False),
    "can grow": (partial(block, "SHRINK"), False),
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
    with closing(LocalUpgrade(lambda key: make() if key == b"k" * 16 else None)) as upgrade:
        memory = fetch_memory(upgrade.name, b"k" * 16, CAPACITY)
        assert (memory is not None) is is_taken
        assert fetch_memory(upgrade.name, b"x" * 16, CAPACITY) is None
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
        rewriting(it, {Kind.CLIENT_READY: {}}) as (proxy, url),
        no_output(capfd),
    ):
        with shoal.connect(url, 2, timeout=5.0) as envs:
            assert_identical(rollout(envs), local_rollout())
        assert not uses_shared_memory(proxy)


# Corrupted memory

COUNTERS = {
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

    def recorded(capacity):
        descriptor, memory = make_memory(capacity)
        kept.append(memory)
        return descriptor, memory

    monkeypatch.setattr(sys.modules["shoal.remote._session"], "make_memory", recorded)
    yield kept
    kept.clear()


@contextmanager
def unaffected_client(it):
    """Check that another client of the server is not affected, and that no thread fails."""
    errors = []
    hook, threading.excepthook = threading.excepthook, lambda args: errors.append(args.exc_value)
    try:
        with shoal.connect(it, 2, timeout=10.0) as other:
            other.reset(seed=3)
            yield
            other.step(np.arange(2) % 2)
        with shoal.connect(it, 2, timeout=10.0) as new_client:
            assert_identical(rollout(new_client), local_rollout())
    finally:
        threading.excepthook = hook
    assert not errors, errors


def put(memory, place, value):
    memory[place : place + 8].view(np.uint64)[0] = value


@pytest.mark.parametrize("value", [2**64 - 1, 2**63, 2**40])
@pytest.mark.parametrize("counter", COUNTERS)
def test_invalid_counters_end_the_connection(counter, value, memories):
    with shoal.serve({"it": "CartPole-v1"}, TCP) as server:
        it = f"{server.url}/it"
        with unaffected_client(it):
            envs = shoal.connect(it, 2, timeout=10.0)
            rollout(envs, 3)
            start_time = time.monotonic()
            put(memories[-1], COUNTERS[counter], value)
            with pytest.raises(ConnectionError):
                envs.step(np.zeros(2, np.int64))
            with pytest.raises(ConnectionError):
                envs.reset()
            envs.close()
            assert time.monotonic() - start_time < 8.0  # less than the timeout
            assert wait_until(lambda: server.sessions == 1)


@pytest.mark.parametrize("counter", COUNTERS)
def test_session_resumes_after_invalid_counters(counter, memories):
    def change(step):
        if step in (5, 6, 13):
            put(memories[-1], COUNTERS[counter], 2**63)

    with served("CartPole-v1", TCP) as it:
        with shoal.connect(it, 2, timeout=10.0, on_lost="resume") as envs:
            assert_identical(rollout(envs, before_step=change), local_rollout())
            assert envs.stats().reconnects == 3
        assert len(memories) == 4


def corrupt(envs, memory, seed):
    """Step, and change a byte or a counter of the rings before each step."""
    rng = np.random.default_rng(seed)
    for _ in range(1000):
        if seed % 2:
            memory[rng.integers(0, 448)] = rng.integers(0, 256)
        else:
            place = list(COUNTERS.values())[rng.integers(4)]
            count = int(memory[place : place + 8].view(np.uint64)[0])
            put(memory, place, (count + int(rng.integers(-200, 200))) % 2**64)
        envs.step(np.zeros(2, np.int64))


@pytest.mark.parametrize("seed", range(8))
def test_corrupted_memory_is_an_error_of_the_client(seed, memories):
    """Includes plausible but wrong counters, which repeat old bytes or block the reader."""
    with served("CartPole-v1", TCP) as it, unaffected_client(it):
        envs = shoal.connect(it, 2, timeout=1.0)
        rollout(envs, 3)
        start_time = time.monotonic()
        with pytest.raises((ConnectionError, ReceiveTimeoutError)):
            corrupt(envs, memories[-1], seed)
        envs.close()
        assert time.monotonic() - start_time < 15.0
