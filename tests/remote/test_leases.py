"""Exclusive vectors have one owner; a lost owner means the safe state."""

import signal
import struct
import threading
import time

import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.errors import ConnectionLostError, LeaseError, ReceiveTimeoutError
from shoal.pools import InlinePool
from shoal.remote import Hosted
from shoal.remote._messages import ResetRequest, pack_message
from shoal.remote._value_codec import pack_values
from shoal.remote._wire import Kind
from shoal.testing import ProbeEnv
from tests.remote.peers import LONG, SOON, Cell, Raw, WakeableCell, process, wait_until
from tests.remote.proxy import proxied
from tests.remote.serving import TCP, named, place


class HostedCell:
    """A server that hosts an exclusive cell and records calls of its safe state."""

    def __init__(self, url=None, *, lease=10.0, cell=Cell, **options):
        self.safe = []
        self.cells = []
        self.server = shoal.serve(
            {
                "it": Hosted(self._make(cell), True, lease, self._make_safe),
                "free": lambda: InlinePool([ProbeEnv]),
            },
            url or place(),
            **options,
        )
        self.url = named(self.server.url, "it")

    def _make(self, cell):
        def make():
            self.cells.append(cell())
            return self.cells[-1]

        return make

    def _make_safe(self):
        self.safe.append(time.monotonic())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()


def test_one_owner_at_a_time():
    with HostedCell() as hosted_cell:
        first = shoal.connect(hosted_cell.url)
        first.reset(seed=0)
        for priority in (0, -1):
            with pytest.raises(LeaseError, match=r"priority 0.*has had it for"):
                shoal.connect(hosted_cell.url, priority=priority)
        assert first.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        first.close()
        second = shoal.connect(hosted_cell.url)
        second.reset(seed=0)
        second.close()
        assert len(hosted_cell.cells) == 2
        assert hosted_cell.safe == []


def test_rejected_clients_do_not_count_as_sessions():
    with HostedCell(max_sessions=2) as hosted_cell:
        owner = shoal.connect(hosted_cell.url)
        for _ in range(5):
            with pytest.raises(LeaseError):
                shoal.connect(hosted_cell.url)
        other = shoal.connect(named(hosted_cell.server.url, "free"))
        other.reset(seed=0)
        other.close()
        owner.close()


@pytest.mark.parametrize("pause", [0.0, 0.6])
@pytest.mark.parametrize("on_lost", ["raise", pytest.param("resume", marks=pytest.mark.slow)])
@pytest.mark.parametrize("scheme", ["inproc", "unix", "tcp", "ws"])
def test_higher_priority_takes_over(scheme, on_lost, pause, tmp_path):
    urls = {"inproc": place(), "unix": f"unix://{tmp_path}/socket", "ws": "ws://127.0.0.1:0"}
    with HostedCell(urls.get(scheme, TCP), lease=2.0) as hosted_cell:
        first = shoal.connect(hosted_cell.url, on_lost=on_lost)
        first.reset(seed=0)
        second = shoal.connect(hosted_cell.url, priority=1)
        assert len(hosted_cell.safe) == 1
        assert hosted_cell.cells[0].is_closed == 1
        time.sleep(pause)  # the heartbeat continues
        with pytest.raises(LeaseError, match="has taken over"):
            first.step([0, 0, 0])
        second.reset(seed=0)
        with pytest.raises((LeaseError, ConnectionLostError)):
            first.reset(seed=0)
        start_time = time.monotonic()
        first.close()
        assert time.monotonic() - start_time < 5.0  # shorter than the timeout of a close
        assert second.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        second.close()
        assert len(hosted_cell.safe) == 1


def test_owner_is_notified_while_it_waits():
    with HostedCell(cell=WakeableCell) as hosted_cell:
        first = shoal.connect(hosted_cell.url)
        first.reset(seed=0)
        first.send([LONG, 0, 0])
        takeover = []
        thread = threading.Timer(
            0.1, lambda: takeover.append(shoal.connect(hosted_cell.url, priority=5))
        )
        thread.start()
        start_time = time.monotonic()
        with pytest.raises(LeaseError, match="has taken over"):
            first.recv()
        assert time.monotonic() - start_time < SOON
        assert takeover == []  # the call in progress ends first
        hosted_cell.cells[0].woken.set()
        thread.join()
        first.close()
        takeover[0].close()


def test_concurrent_claims():
    with HostedCell() as hosted_cell:
        got, refused = [], []

        def want(priority):
            try:
                envs = shoal.connect(hosted_cell.url, priority=priority)
                got.append(priority)
                envs.close()
            except LeaseError:
                refused.append(priority)

        threads = [threading.Thread(target=want, args=(priority % 3,)) for priority in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
        assert len(got) + len(refused) == 9
        assert 2 in got
        shoal.connect(hosted_cell.url).close()
        assert all(cell.is_closed == 1 for cell in hosted_cell.cells)
        assert wait_until(lambda: hosted_cell.server.sessions == 0, SOON)


def test_regular_close_does_not_call_safe_state():
    with HostedCell() as hosted_cell:
        for _ in range(3):
            with shoal.connect(hosted_cell.url) as envs:
                envs.reset(seed=0)
        assert wait_until(lambda: hosted_cell.server.sessions == 0, SOON)
        assert hosted_cell.safe == []
        assert [cell.is_closed for cell in hosted_cell.cells] == [1, 1, 1]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("how", ["closed", "reset"])
def test_closed_socket_calls_safe_state_once(how, shared):
    with HostedCell(TCP) as hosted_cell, proxied(hosted_cell.url) as (proxy, through):
        envs = shoal.connect(through, shared_memory=shared)
        envs.reset(seed=0)
        envs.send([200, 0, 0])
        if how == "closed":
            envs.pool._dispatcher.link._channel.transport.close()
        else:
            proxy.cut()
        assert wait_until(lambda: len(hosted_cell.safe) == 1, SOON)
        assert wait_until(lambda: hosted_cell.server.sessions == 0, SOON)
        time.sleep(0.1)
        assert len(hosted_cell.safe) == 1
        assert hosted_cell.cells[0].is_closed == 1
        envs.close()
        again = shoal.connect(hosted_cell.url)
        again.close()
        assert len(hosted_cell.safe) == 1


CLIENT = """
import time
import shoal
envs = shoal.connect({url!r}, on_lost={on_lost!r}, timeout=30.0)
envs.reset(seed=0)
print("ready", flush=True)
{then}
"""


def client(url, then="time.sleep(60)", on_lost="raise"):
    return process(CLIENT.format(url=url, then=then, on_lost=on_lost))


@pytest.mark.parametrize("is_busy", [pytest.param(False, marks=pytest.mark.slow), True])
def test_killed_client_calls_safe_state_once(is_busy):
    then = f"envs.step([{LONG}, 0, 0])" if is_busy else "time.sleep(60)"
    with (
        HostedCell(TCP, lease=2 * LONG / 1000, cell=WakeableCell) as hosted_cell,
        client(hosted_cell.url, then) as owner,
    ):
        assert not is_busy or hosted_cell.cells[0].running.wait(SOON)
        owner.signal(signal.SIGKILL)
        assert wait_until(lambda: hosted_cell.safe, SOON)
        assert hosted_cell.cells[0].is_closed == 0 or not is_busy  # safe while it is at work
        hosted_cell.cells[0].woken.set()
        assert wait_until(lambda: hosted_cell.server.sessions == 0, SOON)
        assert len(hosted_cell.safe) == 1


def test_stopped_client_loses_the_lease():
    lease = 2.0
    with HostedCell(TCP, lease=lease) as hosted_cell, client(hosted_cell.url) as owner:
        time.sleep(1.1 * lease)
        assert hosted_cell.safe == []
        with pytest.raises(LeaseError):
            shoal.connect(hosted_cell.url)
        start_time = time.monotonic()
        owner.stop()
        assert wait_until(lambda: hosted_cell.safe, SOON)
        assert time.monotonic() - start_time > 0.25 * lease
        other = shoal.connect(hosted_cell.url)
        other.reset(seed=0)
        owner.signal(signal.SIGCONT)
        time.sleep(0.2)
        assert other.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        other.close()
        assert len(hosted_cell.safe) == 1


SERVER = """
import shoal
from shoal.remote import Hosted
from tests.remote.peers import Cell
hosted = Hosted(Cell, True, {lease}, lambda: print("safe", flush=True))
server = shoal.serve({{"it": hosted}}, "tcp://127.0.0.1:0")
print("ready", server.url, flush=True)
server.wait()
print("closed", flush=True)
"""


def is_free(url):
    try:
        shoal.connect(url).close()
    except LeaseError:
        return False
    return True


@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_stopped_server_does_not_end_the_lease(shared):
    """The client has sent heartbeats all the time; only the server was stopped."""
    with process(SERVER.format(lease=1.5)) as host:
        url = f"{host.ready_args[0]}/it"
        envs = shoal.connect(url, shared_memory=shared)
        envs.reset(seed=0)
        host.stop()
        envs.send([0, 0, 0])
        start_time = time.monotonic()
        with pytest.raises(ReceiveTimeoutError):
            envs.recv(timeout=0.5)
        assert 0.4 < time.monotonic() - start_time < SOON
        time.sleep(1.6)
        host.signal(signal.SIGCONT)
        assert envs.recv().observations[:, 1].tolist() == [1, 1, 1]
        assert not is_free(url)
        assert envs.step([0, 0, 0])[0][:, 1].tolist() == [2, 2, 2]
        envs.close()
        assert is_free(url)
        host.signal(signal.SIGINT)
        assert host.remaining_output() == "closed\n"


@pytest.mark.parametrize("on_lost", ["raise", pytest.param("resume", marks=pytest.mark.slow)])
def test_client_killed_while_server_is_stopped_loses_the_lease(on_lost):
    with process(SERVER.format(lease=1.5)) as host:
        url = f"{host.ready_args[0]}/it"
        with client(url, on_lost=on_lost) as owner:
            assert not is_free(url)
            host.stop()
            owner.signal(signal.SIGKILL)
            owner.popen.wait()
        host.signal(signal.SIGCONT)
        assert wait_until(lambda: is_free(url), SOON)
        host.signal(signal.SIGINT)
        assert host.remaining_output() == "safe\nclosed\n"


def test_stopped_client_with_unread_data_loses_the_lease():
    """The server is blocked in a send to the stopped client."""

    class Camera(Cell):
        # Large elements: spaces with many elements take seconds to create and compare.
        single_observation_space = spaces.Box(0, 1, (600_000,), np.float64)

        def _seen(self, slot):
            return np.zeros(600_000)

    with HostedCell(TCP, lease=1.5, cell=Camera) as hosted_cell, Raw(hosted_cell.url) as raw:
        raw.write(Kind.RESET, reset_request(3))
        assert raw.last_response()[0].kind is Kind.BATCH
        raw.write(Kind.STEP, body=struct.pack("<3q", 0, 0, 0), rows=3, flags=2)
        # The client stays stopped; the stall timeout is much longer than the lease.
        assert wait_until(lambda: hosted_cell.safe, SOON)


@pytest.mark.parametrize("sent", ["half a header", "a header", "half"])
def test_client_that_stops_inside_a_message_loses_the_lease(sent):
    with HostedCell(TCP, lease=1.2) as hosted_cell, Raw(hosted_cell.url) as raw:
        raw.write(Kind.RESET, reset_request(3))
        raw.read()
        whole = raw.message(Kind.STEP, body=struct.pack("<3q", 0, 0, 0), rows=3, flags=2)
        sizes = {"half a header": 20, "a header": len(whole) - 24, "half": len(whole) - 8}
        raw.socket.sendall(whole[: sizes[sent]])
        assert wait_until(lambda: hosted_cell.safe, SOON)
        assert hosted_cell.cells[0].executed == []


def reset_request(count):

    return pack_message(ResetRequest(tuple(range(count)), pack_values([[None] * count, None])))


@pytest.mark.parametrize("scheme", ["inproc", pytest.param("tcp", marks=pytest.mark.slow)])
def test_busy_owner_keeps_the_lease(scheme):
    with HostedCell(None if scheme == "inproc" else TCP, lease=1.2) as hosted_cell:
        envs = shoal.connect(hosted_cell.url)
        envs.reset(seed=0)
        time.sleep(1.8)
        with pytest.raises(LeaseError):
            shoal.connect(hosted_cell.url)
        assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        envs.close()
        assert hosted_cell.safe == []


def test_owner_keeps_the_lease_during_a_long_step():
    with HostedCell(TCP, lease=1.2) as hosted_cell:
        envs = shoal.connect(hosted_cell.url)
        envs.reset(seed=0)
        assert envs.step([1800, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        envs.close()
        assert hosted_cell.safe == []


def test_owner_resumes_within_the_lease():
    with (
        HostedCell(TCP, lease=2.0, session_ttl=60.0) as hosted_cell,
        proxied(hosted_cell.url) as (proxy, through),
    ):
        envs = shoal.connect(through, on_lost="resume", shared_memory=False)
        envs.reset(seed=0)
        port, proxy.port = proxy.port, 1
        proxy.cut()
        time.sleep(0.3)
        with pytest.raises(LeaseError):
            shoal.connect(hosted_cell.url)
        assert hosted_cell.safe == []
        proxy.port = port
        assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        start_time = time.monotonic()
        proxy.port = 1
        proxy.cut()
        assert wait_until(lambda: hosted_cell.safe, SOON)
        assert time.monotonic() - start_time > 0.5
        other = shoal.connect(hosted_cell.url)
        other.close()
        proxy.port = port
        with pytest.raises(ConnectionLostError):
            envs.step([0, 0, 0])
        assert len(hosted_cell.safe) == 1
        envs.close()


def test_busy_owner_reconnects_in_background():
    """Otherwise the lease would end although the client is alive."""
    with (
        HostedCell(TCP, lease=1.6, session_ttl=60.0) as hosted_cell,
        proxied(hosted_cell.url) as (proxy, through),
    ):
        envs = shoal.connect(through, on_lost="resume", shared_memory=False)
        envs.reset(seed=0)
        proxy.cut()
        time.sleep(2.2)
        try:
            assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
            assert hosted_cell.safe == []
        finally:
            envs.close()


def test_closing_the_server_calls_safe_state():
    hosted_cell = HostedCell()
    envs = shoal.connect(hosted_cell.url)
    envs.reset(seed=0)
    hosted_cell.server.close()
    assert len(hosted_cell.safe) == 1
    assert hosted_cell.cells[0].is_closed == 1
    envs.close()


def test_failing_safe_state_releases_the_device(monkeypatch):
    raised = []
    monkeypatch.setattr(threading, "excepthook", lambda args: raised.append(args.exc_type))
    cells = []

    def make():
        cells.append(Cell())
        return cells[-1]

    def fails():
        raise OSError("the brake is jammed")

    with shoal.serve({"it": Hosted(make, True, safe_state=fails)}, place()) as server:
        first = shoal.connect(f"{server.url}#it")
        first.close(terminate=True)
        assert wait_until(lambda: server.sessions == 0, SOON)
        assert cells[0].is_closed == 1
        second = shoal.connect(f"{server.url}#it")
        second.reset(seed=0)
        second.close()
