"""Servers that exit, are killed, fork, or are replaced."""

import base64
import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack

import pytest

import shoal
from shoal.errors import ConnectionLostError
from tests.remote.peers import process, wait_until
from tests.remote.proxy import proxied
from tests.remote.serving import Factory, named

# Exit with silent connections

SILENT = """
import threading, time
import shoal
from tests.remote.serving import Factory
server = shoal.serve({{"it": Factory()}}, {urls!r}, tls={tls!r})
before = threading.active_count()
print("ready", *server.urls, flush=True)
while threading.active_count() < before + {count}:  # one thread per connection
    time.sleep(0.005)
time.sleep(0.2)  # until the threads wait in native code
print("ends", flush=True)
if {closes}:
    server.close()
"""

UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: it\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: " + base64.b64encode(b"0" * 16) + b"\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def connect_silently(url, data):
    """Connect, send this, and then nothing."""
    scheme, _, place = url.partition("://")
    if scheme == "unix":
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connected.connect(place)
    else:
        connected = socket.create_connection(("127.0.0.1", int(place.rpartition(":")[2])), 10.0)
    connected.sendall(data)
    return connected


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    files = [str(folder / name) for name in ("certificate.pem", "key.pem")]
    new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=it"
    subprocess.run(
        ["openssl", *new.split(), "-out", files[0], "-keyout", files[1]],
        check=True,
        capture_output=True,
    )
    return tuple(files)


SOCKETS = ("tls", "tcp", "unix")


@pytest.mark.parametrize(
    ("schemes", "data", "closes"),
    [
        pytest.param(SOCKETS, b"", True, id="sockets, closed"),
        pytest.param(SOCKETS, b"", False, id="sockets"),
        pytest.param(("ws",), b"", True, id="incomplete websocket, closed"),
        pytest.param(("ws",), b"", False, id="incomplete websocket", marks=pytest.mark.slow),
        pytest.param(("ws",), UPGRADE, True, id="a websocket, closed"),
        pytest.param(("ws",), UPGRADE, False, id="a websocket"),
    ],
)
def test_exit_does_not_wait_for_silent_connections(schemes, data, closes, listen_at, certificate):
    urls = [listen_at(scheme) for scheme in schemes]
    tls = certificate if "tls" in schemes else None
    script = SILENT.format(urls=urls, tls=tls, count=len(urls), closes=closes)
    with process(script) as ending, ExitStack() as connections:
        for url in ending.ready_args:
            connections.enter_context(connect_silently(url, data))
        assert ending.popen.stdout.readline() == "ends\n"
        start_time = time.monotonic()
        assert ending.remaining_output() == ""
        # Handshake timeouts are ten seconds, and three seconds for opening a websocket.
        assert time.monotonic() - start_time < 8.0
        assert ending.popen.returncode == 0


# Killed servers

OWNED = """
import shoal
from shoal.remote import Hosted
from tests.remote.peers import Cell
hosted = Hosted(Cell, exclusive=True, lease={lease})
with shoal.serve({{"it": hosted}}, "tcp://127.0.0.1:0") as server:
    print("ready", server.url, flush=True)
    server.wait()
"""


@pytest.mark.parametrize("shared", [False, True])
def test_heartbeat_notices_a_killed_server(shared):
    with process(OWNED.format(lease=0.8)) as host:
        url = f"{host.ready_args[0]}/it"
        envs = shoal.connect(url, on_lost="resume", timeout=10.0, shared_memory=shared)
        envs.reset()
        channel = envs.pool._dispatcher.link._channel
        assert channel.transport.is_shared is shared
        host.signal(signal.SIGKILL)
        assert wait_until(lambda: channel.transport is None)
        envs.close()


def test_close_during_background_reconnect():
    with (
        process(OWNED.format(lease=0.8)) as host,
        proxied(f"{host.ready_args[0]}/it") as (proxy, url),
    ):
        envs = shoal.connect(url, on_lost="resume", timeout=60.0, shared_memory=False)
        envs.reset()
        link = envs.pool._dispatcher.link
        host.signal(signal.SIGSTOP)  # connections are accepted, but not answered
        proxy.cut()
        assert wait_until(lambda: link._channel.transport is None and proxy.connections > 1)
        start_time = time.monotonic()
        envs.close()
        assert time.monotonic() - start_time < 5.0


FORKED = """
import os, signal, threading, time
import shoal
is_requested = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: is_requested.set())
server = shoal.serve({"it": "CartPole-v1"}, "tcp://127.0.0.1:0")
print("ready", server.url, flush=True)
is_requested.wait(60)
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(60)
os._exit(0)
"""


@pytest.mark.parametrize("shared", [False, True])
def test_forked_child_of_server_does_not_keep_connections(shared):
    with process(FORKED) as host:
        envs = shoal.connect(f"{host.ready_args[0]}/it", 2, timeout=60.0, shared_memory=shared)
        envs.reset(seed=0)
        assert envs.pool._dispatcher.link._channel.transport.is_shared is shared
        host.signal(signal.SIGUSR1)
        child = int(host.popen.stdout.readline())
        try:
            envs.step([0, 0])
            host.signal(signal.SIGKILL)
            start_time = time.monotonic()
            with pytest.raises(ConnectionLostError):
                envs.step([0, 0])
            assert time.monotonic() - start_time < 20.0
        finally:
            os.kill(child, signal.SIGKILL)
            envs.close()


# Servers at the same path


def test_closed_server_keeps_socket_of_its_successor(tmp_path):
    path = tmp_path / "socket"
    first = shoal.serve({"it": Factory()}, f"unix://{path}")
    path.unlink()  # as if it were stale
    with shoal.serve({"it": Factory()}, f"unix://{path}") as second:
        first.close()
        assert path.exists()
        with shoal.connect(named(second.url, "it"), timeout=10.0) as envs:
            envs.reset(seed=0)
    assert not path.exists()


def test_closed_server_removes_its_socket(tmp_path):
    path = tmp_path / "socket"
    with shoal.serve({"it": Factory()}, f"unix://{path}"):
        assert path.exists()
    assert not path.exists()
