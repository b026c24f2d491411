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


class Shop:
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
    with Shop() as shop:
        first = shoal.connect(shop.url)
        first.reset(seed=0)
        for priority in (0, -1):
            with pytest.raises(LeaseError, match=r"priority 0.*has had it for"):
                shoal.connect(shop.url, priority=priority)
        assert first.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        first.close()
        second = shoal.connect(shop.url)
        second.reset(seed=0)
        second.close()
        assert len(shop.cells) == 2
        assert shop.safe == []


def test_rejected_clients_do_not_count_as_sessions():
    with Shop(max_sessions=2) as shop:
        owner = shoal.connect(shop.url)
        for _ in range(5):
            with pytest.raises(LeaseError):
                shoal.connect(shop.url)
        other = shoal.connect(named(shop.server.url, "free"))
        other.reset(seed=0)
        other.close()
        owner.close()


@pytest.mark.parametrize("pause", [0.0, 0.6])
@pytest.mark.parametrize("on_lost", ["raise", pytest.param("resume", marks=pytest.mark.slow)])
@pytest.mark.parametrize("scheme", ["inproc", "unix", "tcp", "ws"])
def test_higher_priority_takes_over(scheme, on_lost, pause, tmp_path):
    urls = {"inproc": place(), "unix": f"unix://{tmp_path}/socket", "ws": "ws://127.0.0.1:0"}
    with Shop(urls.get(scheme, TCP), lease=2.0) as shop:
        first = shoal.connect(shop.url, on_lost=on_lost)
        first.reset(seed=0)
        second = shoal.connect(shop.url, priority=1)
        assert len(shop.safe) == 1
        assert shop.cells[0].is_closed == 1
        time.sleep(pause)  # the heartbeat continues
        with pytest.raises(LeaseError, match="has taken over"):
            first.step([0, 0, 0])
        second.reset(seed=0)
        with pytest.raises((LeaseError, ConnectionLostError)):
            first.reset(seed=0)
        begun = time.monotonic()
        first.close()
        assert time.monotonic() - begun < 5.0  # shorter than the timeout of a close
        assert second.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        second.close()
        assert len(shop.safe) == 1


def test_owner_is_notified_while_it_waits():
    with Shop(cell=WakeableCell) as shop:
        first = shoal.connect(shop.url)
        first.reset(seed=0)
        first.send([LONG, 0, 0])
        taken = []
        thread = threading.Timer(0.1, lambda: taken.append(shoal.connect(shop.url, priority=5)))
        thread.start()
        begun = time.monotonic()
        with pytest.raises(LeaseError, match="has taken over"):
            first.recv()
        assert time.monotonic() - begun < SOON
        assert taken == []  # the call in progress ends first
        shop.cells[0].woken.set()
        thread.join()
        first.close()
        taken[0].close()


def test_concurrent_claims():
    with Shop() as shop:
        got, refused = [], []

        def want(priority):
            try:
                envs = shoal.connect(shop.url, priority=priority)
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
        shoal.connect(shop.url).close()
        assert all(cell.is_closed == 1 for cell in shop.cells)
        assert wait_until(lambda: shop.server.sessions == 0, SOON)


def test_regular_close_does_not_call_safe_state():
    with Shop() as shop:
        for _ in range(3):
            with shoal.connect(shop.url) as envs:
                envs.reset(seed=0)
        assert wait_until(lambda: shop.server.sessions == 0, SOON)
        assert shop.safe == []
        assert [cell.is_closed for cell in shop.cells] == [1, 1, 1]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("how", ["closed", "reset"])
def test_closed_socket_calls_safe_state_once(how, shared):
    with Shop(TCP) as shop, proxied(shop.url) as (proxy, through):
        envs = shoal.connect(through, shared_memory=shared)
        envs.reset(seed=0)
        envs.send([200, 0, 0])
        if how == "closed":
            envs.pool._dispatcher.link._channel.transport.close()
        else:
            proxy.cut()
        assert wait_until(lambda: len(shop.safe) == 1, SOON)
        assert wait_until(lambda: shop.server.sessions == 0, SOON)
        time.sleep(0.1)
        assert len(shop.safe) == 1
        assert shop.cells[0].is_closed == 1
        envs.close()
        again = shoal.connect(shop.url)
        again.close()
        assert len(shop.safe) == 1


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
        Shop(TCP, lease=2 * LONG / 1000, cell=WakeableCell) as shop,
        client(shop.url, then) as owner,
    ):
        assert not is_busy or shop.cells[0].running.wait(SOON)
        owner.signal(signal.SIGKILL)
        assert wait_until(lambda: shop.safe, SOON)
        assert shop.cells[0].is_closed == 0 or not is_busy  # safe while it is at work
        shop.cells[0].woken.set()
        assert wait_until(lambda: shop.server.sessions == 0, SOON)
        assert len(shop.safe) == 1


def test_stopped_client_loses_the_lease():
    lease = 2.0
    with Shop(TCP, lease=lease) as shop, client(shop.url) as owner:
        time.sleep(1.1 * lease)
        assert shop.safe == []
        with pytest.raises(LeaseError):
            shoal.connect(shop.url)
        begun = time.monotonic()
        owner.stop()
        assert wait_until(lambda: shop.safe, SOON)
        assert time.monotonic() - begun > 0.25 * lease
        other = shoal.connect(shop.url)
        other.reset(seed=0)
        owner.signal(signal.SIGCONT)
        time.sleep(0.2)
        assert other.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        other.close()
        assert len(shop.safe) == 1


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
        url = f"{host.told[0]}/it"
        envs = shoal.connect(url, shared_memory=shared)
        envs.reset(seed=0)
        host.stop()
        envs.send([0, 0, 0])
        begun = time.monotonic()
        with pytest.raises(ReceiveTimeoutError):
            envs.recv(timeout=0.5)
        assert 0.4 < time.monotonic() - begun < SOON
        time.sleep(1.6)
        host.signal(signal.SIGCONT)
        assert envs.recv().observations[:, 1].tolist() == [1, 1, 1]
        assert not is_free(url)
        assert envs.step([0, 0, 0])[0][:, 1].tolist() == [2, 2, 2]
        envs.close()
        assert is_free(url)
        host.signal(signal.SIGINT)
        assert host.rest() == "closed\n"


@pytest.mark.parametrize("on_lost", ["raise", pytest.param("resume", marks=pytest.mark.slow)])
def test_client_killed_while_server_is_stopped_loses_the_lease(on_lost):
    with process(SERVER.format(lease=1.5)) as host:
        url = f"{host.told[0]}/it"
        with client(url, on_lost=on_lost) as owner:
            assert not is_free(url)
            host.stop()
            owner.signal(signal.SIGKILL)
            owner.popen.wait()
        host.signal(signal.SIGCONT)
        assert wait_until(lambda: is_free(url), SOON)
        host.signal(signal.SIGINT)
        assert host.rest() == "safe\nclosed\n"


def test_stopped_client_with_unread_data_loses_the_lease():
    """The server is blocked in a send to the stopped client."""

    class Camera(Cell):
        # Large elements: spaces with many elements take seconds to create and compare.
        single_observation_space = spaces.Box(0, 1, (600_000,), np.float64)

        def _seen(self, slot):
            return np.zeros(600_000)

    with Shop(TCP, lease=1.5, cell=Camera) as shop, Raw(shop.url) as raw:
        raw.write(Kind.RESET, reset_request(3))
        assert raw.answer()[0].kind is Kind.BATCH
        raw.write(Kind.STEP, body=struct.pack("<3q", 0, 0, 0), rows=3, flags=2)
        # The client stays stopped; the stall timeout is much longer than the lease.
        assert wait_until(lambda: shop.safe, SOON)


@pytest.mark.parametrize("sent", ["half a header", "a header", "half"])
def test_client_that_stops_inside_a_message_loses_the_lease(sent):
    with Shop(TCP, lease=1.2) as shop, Raw(shop.url) as raw:
        raw.write(Kind.RESET, reset_request(3))
        raw.read()
        whole = raw.message(Kind.STEP, body=struct.pack("<3q", 0, 0, 0), rows=3, flags=2)
        sizes = {"half a header": 20, "a header": len(whole) - 24, "half": len(whole) - 8}
        raw.socket.sendall(whole[: sizes[sent]])
        assert wait_until(lambda: shop.safe, SOON)
        assert shop.cells[0].executed == []


def reset_request(count):

    return pack_message(ResetRequest(tuple(range(count)), pack_values([[None] * count, None])))


@pytest.mark.parametrize("scheme", ["inproc", pytest.param("tcp", marks=pytest.mark.slow)])
def test_busy_owner_keeps_the_lease(scheme):
    with Shop(None if scheme == "inproc" else TCP, lease=1.2) as shop:
        envs = shoal.connect(shop.url)
        envs.reset(seed=0)
        time.sleep(1.8)
        with pytest.raises(LeaseError):
            shoal.connect(shop.url)
        assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        envs.close()
        assert shop.safe == []


def test_owner_keeps_the_lease_during_a_long_step():
    with Shop(TCP, lease=1.2) as shop:
        envs = shoal.connect(shop.url)
        envs.reset(seed=0)
        assert envs.step([1800, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        envs.close()
        assert shop.safe == []


def test_owner_resumes_within_the_lease():
    with Shop(TCP, lease=2.0, session_ttl=60.0) as shop, proxied(shop.url) as (proxy, through):
        envs = shoal.connect(through, on_lost="resume", shared_memory=False)
        envs.reset(seed=0)
        port, proxy.port = proxy.port, 1
        proxy.cut()
        time.sleep(0.3)
        with pytest.raises(LeaseError):
            shoal.connect(shop.url)
        assert shop.safe == []
        proxy.port = port
        assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        begun = time.monotonic()
        proxy.port = 1
        proxy.cut()
        assert wait_until(lambda: shop.safe, SOON)
        assert time.monotonic() - begun > 0.5
        other = shoal.connect(shop.url)
        other.close()
        proxy.port = port
        with pytest.raises(ConnectionLostError):
            envs.step([0, 0, 0])
        assert len(shop.safe) == 1
        envs.close()


def test_busy_owner_reconnects_in_background():
    """Otherwise the lease would end although the client is alive."""
    with Shop(TCP, lease=1.6, session_ttl=60.0) as shop, proxied(shop.url) as (proxy, through):
        envs = shoal.connect(through, on_lost="resume", shared_memory=False)
        envs.reset(seed=0)
        proxy.cut()
        time.sleep(2.2)
        try:
            assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
            assert shop.safe == []
        finally:
            envs.close()


def test_closing_the_server_calls_safe_state():
    shop = Shop()
    envs = shoal.connect(shop.url)
    envs.reset(seed=0)
    shop.server.close()
    assert len(shop.safe) == 1
    assert shop.cells[0].is_closed == 1
    envs.close()


def test_failing_safe_state_releases_the_device(monkeypatch):
    told = []
    monkeypatch.setattr(threading, "excepthook", lambda args: told.append(args.exc_type))
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
