"""Threads, descriptors, sessions and shared memory are released, whichever end closes first."""

import gc
import os
import signal
import threading
import time
from pathlib import Path

import gymnasium
import pytest

import shoal
from shoal.errors import ConnectionLostError
from shoal.pools import InlinePool
from shoal.remote import Hosted
from shoal.testing import ProbeEnv
from tests.remote.peers import LONG, SOON, Cell, WakeableCell, process, shoal_threads, wait_until
from tests.remote.serving import named, place

SCHEMES = ["inproc", "unix", "tcp", "ws"]


def factory(num_envs=2):
    return InlinePool([ProbeEnv] * num_envs)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def mapped():
    """Number of shared-memory blocks that are mapped."""
    return Path("/proc/self/maps").read_text().count("shoal-rings")


def resources():
    """Numbers of descriptors, threads, mapped blocks and open environments."""
    return descriptors(), threading.active_count(), mapped(), ProbeEnv.open_count


def assert_no_leaks(before, server=None):
    gc.collect()
    assert wait_until(lambda: server is None or server.sessions == 0, SOON)
    wait_until(
        lambda: all(now <= then for now, then in zip(resources(), before, strict=True)), SOON
    )
    now = resources()
    assert all(after <= earlier for after, earlier in zip(now, before, strict=True)), (
        now,
        before,
        shoal_threads(),
    )


def cycles(url, count, **options):
    """Connect, step and close ``count`` times."""
    for k in range(count):
        envs = shoal.connect(url, **options)
        envs.reset(seed=k)
        envs.step(envs.action_space.sample())
        envs.close()


def resources_after_cycles(server, **options):
    """Return the resources of a server that has had clients and has none any more."""
    cycles(named(server.url, "it"), 3, **options)
    assert wait_until(lambda: server.sessions == 0, SOON)
    return resources()


def assert_cycles_leak_nothing(listen, count, on_lost):
    outside = resources()
    with shoal.serve({"it": factory}, listen) as server:
        before = resources_after_cycles(server, on_lost=on_lost)
        cycles(named(server.url, "it"), count, on_lost=on_lost)
        assert_no_leaks(before, server)
    assert_no_leaks(outside)


@pytest.mark.parametrize(
    ("scheme", "on_lost"),
    [("inproc", "raise"), ("unix", "resume"), ("tcp", "raise"), ("ws", "resume")],
)
def test_connect_and_close_leak_nothing(scheme, on_lost, listen_at):
    assert_cycles_leak_nothing(listen_at(scheme), 20, on_lost)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_thousand_connections_leak_nothing(scheme, on_lost, listen_at):
    assert_cycles_leak_nothing(listen_at(scheme), 1000, on_lost)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_servers_leak_nothing(scheme, listen_at):
    before = resources()
    for _ in range(5):
        with shoal.serve({"it": factory}, listen_at(scheme)) as server:
            cycles(named(server.url, "it"), 1)
    assert_no_leaks(before)
    if scheme == "unix":
        assert not Path(listen_at("unix").partition("://")[2]).exists()


def test_heartbeat_threads_end():
    before, heartbeats = resources(), shoal_threads().count("shoal heartbeat")
    with shoal.serve({"it": Hosted(Cell, exclusive=True, lease=2.0)}, place()) as server:
        for _ in range(5):
            with shoal.connect(f"{server.url}#it") as envs:
                envs.reset(seed=0)
                assert shoal_threads().count("shoal heartbeat") > heartbeats
    assert wait_until(lambda: shoal_threads().count("shoal heartbeat") <= heartbeats)
    assert_no_leaks(before)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rejected_clients_leak_nothing(scheme, listen_at):
    def fails():
        raise OSError("nothing is free")

    with shoal.serve({"it": factory, "no": fails}, listen_at(scheme), token="t") as server:
        before = resources_after_cycles(server, token="t")
        for _ in range(10):
            for name, token in (("it", None), ("no", "t"), ("nothing", "t")):
                with pytest.raises(ConnectionError):
                    shoal.connect(named(server.url, name), token=token, timeout=30.0)
        assert_no_leaks(before, server)


@pytest.mark.parametrize("scheme", ["unix", "tcp", "ws"])
def test_failed_connects_leak_nothing(scheme, listen_at):
    before = resources()
    url = listen_at(scheme).replace(":0", ":1")
    for _ in range(5):
        with pytest.raises(ConnectionLostError):
            shoal.connect(named(url, "it"), timeout=1.0)
    assert_no_leaks(before)


@pytest.mark.parametrize(
    ("how", "on_lost"),
    [("del", "raise"), ("cycle", "raise"), ("terminate", "raise"), ("del", "resume")],
)
def test_garbage_collected_vector_ends_its_session(how, on_lost):
    with shoal.serve({"it": factory}, "tcp://127.0.0.1:0", session_ttl=0.5) as server:
        before = resources_after_cycles(server)
        envs = shoal.connect(named(server.url, "it"), on_lost=on_lost)
        envs.reset(seed=0)
        if how == "terminate":
            envs.close(terminate=True)
        if how == "cycle":
            envs.itself = envs
        del envs
        gc.collect()
        assert wait_until(lambda: server.sessions == 0, SOON)
        assert_no_leaks(before, server)


def test_garbage_collected_vector_of_several_servers_ends_its_sessions():
    with shoal.serve({"it": factory}, place()) as one, shoal.serve({"it": factory}, place()) as two:
        envs = shoal.connect([f"{one.url}#it", f"{two.url}#it"])
        envs.reset(seed=0)
        assert (one.sessions, two.sessions) == (1, 1)
        del envs
        gc.collect()
        assert wait_until(lambda: (one.sessions, two.sessions) == (0, 0))


def test_unreachable_server_leaves_no_sessions_at_others():
    with shoal.serve({"it": factory}, place()) as one:
        with pytest.raises(ConnectionLostError):
            shoal.connect([f"{one.url}#it", "inproc://unused#it"], timeout=2.0)
        assert wait_until(lambda: one.sessions == 0)


def test_close_is_idempotent_and_final():
    with shoal.serve({"it": factory}, place()) as server:
        envs = shoal.connect(f"{server.url}#it")
        envs.reset(seed=0)
        envs.close()
        envs.close()
        for use in (envs.reset, envs.recv, lambda: envs.call("label"), envs.cancel):
            with pytest.raises(gymnasium.error.ClosedEnvironmentError):
                use()
        server.close()
        server.close()


CLIENT = """
import time
import shoal
envs = shoal.connect({url!r}, on_lost={on_lost!r}, timeout=60.0)
envs.reset(seed=0)
envs.step(envs.action_space.sample())
print("ready", flush=True)
{then}
"""


def kill_clients(count, on_lost, scheme="tcp://127.0.0.1:0", at_once=1):
    # Only sessions that can be resumed are kept for session_ttl seconds.
    ttl = 0.6 if on_lost == "resume" else 10 * SOON
    with shoal.serve({"it": factory}, scheme, session_ttl=ttl) as server:
        url = named(server.url, "it")
        before = resources_after_cycles(server)
        for _ in range(count // at_once):
            clients = [
                process(CLIENT.format(url=url, on_lost=on_lost, then="time.sleep(60)"))
                for _ in range(at_once)
            ]
            for client in clients:
                with client as running:
                    running.signal(signal.SIGKILL)
        assert wait_until(lambda: server.sessions == 0, SOON)
        assert_no_leaks(before, server)


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
def test_killed_clients_leak_no_session(on_lost):
    kill_clients(2 if on_lost == "raise" else 1, on_lost)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("on_lost", ["raise", "resume"])
def test_hundred_killed_clients_leak_no_session(on_lost):
    kill_clients(100, on_lost)


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_clients_of_a_closed_server_are_notified(scheme, on_lost, listen_at):
    server = shoal.serve({"it": factory}, listen_at(scheme), session_ttl=3.0)
    clients = [
        shoal.connect(named(server.url, "it"), on_lost=on_lost, timeout=30.0) for _ in range(3)
    ]
    for envs in clients:
        envs.reset(seed=0)
    start_time = time.monotonic()
    server.close()
    assert time.monotonic() - start_time < SOON
    assert server.sessions == 0
    for envs in clients:
        with pytest.raises(ConnectionLostError):
            envs.step(envs.action_space.sample())
    assert time.monotonic() - start_time < 2 * SOON  # no client tries to reconnect
    with pytest.raises(ConnectionError):
        shoal.connect(f"{clients[0].pool._target.address}", timeout=0.3)
    for envs in clients:
        envs.close(terminate=True)


def test_waiting_client_is_notified_when_server_closes():
    cell = WakeableCell()
    server = shoal.serve({"it": lambda: cell}, place())
    envs = shoal.connect(f"{server.url}#it")
    envs.reset(seed=0)
    envs.send([LONG, 0, 0])
    closing = threading.Timer(0.1, server.close)
    closing.start()
    start_time = time.monotonic()
    with pytest.raises(ConnectionLostError):
        envs.recv()
    assert time.monotonic() - start_time < SOON
    cell.woken.set()
    closing.join()
    envs.close()


INTERRUPTED = f"""
try:
    envs.step([{LONG}, 0, 0])
except KeyboardInterrupt:
    print("interrupted", flush=True)
envs.close(terminate=True)
"""


@pytest.mark.parametrize("shared", [pytest.param(False, marks=pytest.mark.slow), True])
def test_waiting_client_can_be_interrupted(shared):
    cell = WakeableCell()
    with shoal.serve({"it": lambda: cell}, "tcp://127.0.0.1:0") as server:
        script = CLIENT.format(url=f"{server.url}/it", on_lost="raise", then=INTERRUPTED)
        script = script.replace("timeout=60.0", f"timeout=60.0, shared_memory={shared}")
        script = script.replace("envs.step(envs.action_space.sample())\n", "")
        with process(script) as client:
            assert cell.running.wait(SOON)
            time.sleep(0.1)  # until the client waits for the response
            client.signal(signal.SIGINT)
            assert client.remaining_output(SOON) == "interrupted\n"
        cell.woken.set()


def test_server_can_be_interrupted():
    script = """
import shoal
from shoal.testing import ProbeEnv
from shoal.pools import InlinePool
with shoal.serve({"it": lambda: InlinePool([ProbeEnv])}, "tcp://127.0.0.1:0") as server:
    print("ready", server.url, flush=True)
    server.wait()
print("closed", flush=True)
"""
    with process(script) as host:
        envs = shoal.connect(f"{host.ready_args[0]}/it", timeout=30.0)
        envs.reset(seed=0)
        host.signal(signal.SIGINT)
        assert "closed" in host.remaining_output(2 * SOON)
        with pytest.raises(ConnectionLostError):
            envs.reset(seed=0)
        envs.close()


@pytest.mark.parametrize("closes", ["nothing", "the client", "the server"])
def test_exit_without_closing(closes):
    script = f"""
import shoal
from shoal.pools import InlinePool
from shoal.testing import ProbeEnv
server = shoal.serve({{"it": lambda: InlinePool([ProbeEnv])}}, "tcp://127.0.0.1:0")
envs = shoal.connect(server.url + "/it")
envs.reset(seed=0)
if {closes!r} == "the client":
    envs.close()
if {closes!r} == "the server":
    server.close()
print("ready", flush=True)
"""
    with process(script) as ending:
        assert ending.remaining_output(2 * SOON) == ""
        assert ending.popen.returncode == 0
