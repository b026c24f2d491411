"""``on_lost="truncate"``: each slot of a lost session reports the loss once."""

import threading
from contextlib import contextmanager
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import shoal
from shoal.errors import ReceiveTimeoutError, SessionLostError
from shoal.pools import ThreadPool
from shoal.remote import Hosted
from shoal.remote._request_dispatcher import RequestDispatcher
from tests.remote.peers import LONG, Cell, WakeableCell, wait_until
from tests.remote.proxy import proxied
from tests.remote.serving import TCP, named, served

MODES = ["NextStep", "Disabled", "SameStep"]
BLOCK = 1
"""The action of a step that does not end before the end of the test."""


class Counter(gymnasium.Env):
    """Observes its label and the number of steps of its episode."""

    observation_space = spaces.Box(-1, 1e6, (2,), np.float64)
    action_space = spaces.Discrete(2)
    is_over = threading.Event()

    def __init__(self, label):
        self._label = label

    def _seen(self):
        return np.array([self._label, self._steps], np.float64)

    def reset(self, *, seed=None, options=None):
        self._steps = 0
        return self._seen(), {}

    def step(self, action):
        if action == BLOCK:
            self.is_over.wait(LONG / 1000)
        self._steps += 1
        return self._seen(), 1.0, False, False, {}


@pytest.fixture
def counters():
    """Makes pools of three slots that step concurrently."""
    Counter.is_over.clear()

    def make(autoreset_mode="NextStep"):
        factories = [partial(Counter, label) for label in range(3)]
        mode = AutoresetMode(autoreset_mode)
        return ThreadPool(factories, workers=3, caller_works=False, autoreset_mode=mode)

    return make


class ServerPair:
    """Two servers behind one address, which look like one restarted server."""

    def __init__(self, proxy, url, first, second):
        self.proxy, self.url, self.first = proxy, url, first
        self._ports = [int(each.url.rpartition(":")[2]) for each in (first, second)]

    def move(self):
        """Redirect new connections to the second server."""
        self.proxy.port = self._ports[1]

    def restart(self):
        self.move()
        self.proxy.cut()

    def connected(self, **options):
        # A proxy sees messages on the socket, but not those in shared memory.
        options = {"on_lost": "truncate", "timeout": 20.0, "shared_memory": False} | options
        return shoal.connect(self.url, **options)


@contextmanager
def pair(factory):
    with (
        shoal.serve({"it": factory}, TCP) as first,
        shoal.serve({"it": factory}, TCP) as second,
        proxied(named(first.url, "it")) as (proxy, through),
    ):
        try:
            yield ServerPair(proxy, through, first, second)
        finally:
            Counter.is_over.set()  # the server waits for the step when it is closed


def results_of(batch):
    """Return the observation, the truncated flag and the info of each slot."""
    infos = [{} for _ in batch.slots]
    for row, info in (batch.raw_infos or ([], None))[0]:
        infos[row] |= info
    rows = zip(batch.observations.tolist(), batch.truncated.tolist(), infos, strict=True)
    return dict(zip(batch.slots.tolist(), rows, strict=True))


def stepped(pool, *slots):
    pool.send([0] * len(slots), slots)
    return results_of(pool.recv(slots=slots))


def loss(slot, mode, shown):
    """Return the expected result of a slot that was lost after this many steps."""
    info = {"crashed": True}
    if mode == "SameStep":
        info |= {"final_obs": [slot, shown], "final_info": {"crashed": True}}
    return [slot, 0], True, info


def as_lists(results):
    """Convert arrays in results to lists."""
    for _, _, info in results.values():
        if "final_obs" in info:
            info["final_obs"] = info["final_obs"].tolist()
    return results


def await_unreceived(pool, slot):
    """Wait for a response without receiving it; slot 1 does not finish its step."""

    def has_arrived():
        with pytest.raises(ReceiveTimeoutError):
            pool.recv(slots=[1], timeout=0.02)
        return slot in pool._dispatcher.pending.arrivals.done()

    assert wait_until(has_arrived)


@pytest.mark.parametrize("mode", MODES)
def test_slot_with_received_response_reports_loss_next(mode, counters):
    with pair(counters) as servers, servers.connected(autoreset_mode=mode) as envs:
        pool = envs.pool
        envs.reset()
        envs.step([0, 0, 0])
        pool.send([0], [0])
        pool.send([BLOCK], [1])
        await_unreceived(pool, 0)
        servers.restart()
        assert as_lists(results_of(pool.recv(slots=[1]))) == {1: loss(1, mode, 1)}
        assert results_of(pool.recv(slots=[0])) == {0: ([0, 2], False, {})}
        assert as_lists(stepped(pool, 0)) == {0: loss(0, mode, 2)}
        assert as_lists(stepped(pool, 2)) == {2: loss(2, mode, 1)}
        for k in (1, 2):
            expected = {slot: ([slot, k], False, {}) for slot in range(3)}
            assert stepped(pool, 0, 1, 2) == expected


@pytest.mark.parametrize("mode", MODES)
def test_slots_in_flight_report_loss_once(mode, counters):
    with pair(counters) as servers, servers.connected(autoreset_mode=mode) as envs:
        pool = envs.pool
        envs.reset()
        envs.step([0, 0, 0])
        pool.begin_step([BLOCK] * 3)
        servers.restart()
        expected = {slot: loss(slot, mode, 1) for slot in range(3)}
        assert as_lists(results_of(pool.recv())) == expected
        observations, _, _, truncated, infos = envs.step([0, 0, 0])
        assert observations.tolist() == [[0, 1], [1, 1], [2, 1]]
        assert not truncated.any()
        assert infos == {}


def test_idle_slots_report_loss_when_sent(counters):
    with pair(counters) as servers, servers.connected() as envs:
        pool = envs.pool
        envs.reset()
        servers.restart()
        assert stepped(pool, 2) == {2: loss(2, "NextStep", 0)}
        for k in (1, 2):
            assert stepped(pool, 2) == {2: ([2, k], False, {})}
        assert stepped(pool, 0, 2) == {0: loss(0, "NextStep", 0), 2: ([2, 3], False, {})}
        observations, _, _, truncated, infos = envs.step([0, 0, 0])
        assert observations.tolist() == [[0, 1], [1, 0], [2, 4]]
        assert truncated.tolist() == infos["crashed"].tolist() == [False, True, False]


def test_reset_slot_reports_no_loss(counters):
    with pair(counters) as servers, servers.connected() as envs:
        pool = envs.pool
        envs.reset()
        servers.restart()
        assert stepped(pool, 1) == {1: loss(1, "NextStep", 0)}
        pool.reset([0])
        assert results_of(pool.recv(slots=[0])) == {0: ([0, 0], False, {})}
        assert stepped(pool, 0) == {0: ([0, 1], False, {})}
        assert stepped(pool, 2) == {2: loss(2, "NextStep", 0)}


# Losses that the heartbeat thread notices first

USES = {
    "step": lambda envs: envs.step([0, 0, 0])[3].tolist() == [True] * 3,
    "send": lambda envs: stepped(envs.pool, 1) == {1: loss(1, "NextStep", 1)},
    "call": lambda envs: envs.call("total") == (0, 0, 0),
    "reset": lambda envs: envs.reset()[0].tolist() == [[0, 0], [1, 0], [2, 0]],
}


@pytest.mark.parametrize("use", USES)
def test_call_after_heartbeat_noticed_the_loss(use):
    with (
        pair(Hosted(Cell, exclusive=True, lease=0.4)) as servers,
        servers.connected() as envs,
    ):
        envs.reset()
        envs.step([0, 0, 0])
        lost = envs.pool._dispatcher.link
        servers.restart()
        assert wait_until(lambda: lost.is_over)
        assert USES[use](envs)
        envs.step([0, 0, 0])
        observations, _, _, truncated, infos = envs.step([0, 0, 0])
        assert not truncated.any()
        assert "crashed" not in infos
        assert (
            len(set(observations[:, 1])) <= 2
        )  # one step less for a slot that has reported its loss


# Servers that are closed and restarted


def test_reconnect_waits_for_a_server_that_is_closing():
    """The old server rejects clients until its device has finished the step."""
    cells = []

    def make():
        cells.append(WakeableCell())
        return cells[-1]

    with pair(make) as servers, servers.connected() as envs:
        pool = envs.pool
        envs.reset()
        pool.send([0], [0])
        assert wait_until(lambda: cells[0].executed and not cells[0].running.is_set())
        pool.send([LONG], [1])
        assert cells[0].running.wait(10.0)
        closing = threading.Thread(target=servers.first.close)
        closing.start()

        def reconnect():
            # The first connection, and those that were rejected.
            assert wait_until(lambda: servers.proxy.connections > 2)
            cells[0].woken.set()
            closing.join()
            servers.move()

        coming_back = threading.Thread(target=reconnect)
        coming_back.start()
        assert results_of(pool.recv(slots=[1])) == {1: loss(1, "NextStep", 0)}
        coming_back.join()
        assert results_of(pool.recv(slots=[0])) == {0: ([0, 1], False, {})}
        assert stepped(pool, 0) == {0: loss(0, "NextStep", 1)}
        assert stepped(pool, 2) == {2: loss(2, "NextStep", 0)}
        assert stepped(pool, 0, 1, 2) == {slot: ([slot, 1], False, {}) for slot in range(3)}
        assert len(cells) == 2


def test_lost_call_raises_and_next_call_works():
    with pair(Cell) as servers, servers.connected() as envs:
        envs.reset()
        send = envs.pool._dispatcher.link.send

        def lost_meanwhile(*args, **kwargs):
            servers.move()
            servers.proxy.drops = {*servers.proxy.drops, args[0]}
            number = send(*args, **kwargs)
            servers.proxy.cut()
            servers.proxy.drops = set()
            return number

        envs.pool._dispatcher.link.send = lost_meanwhile
        with pytest.raises(SessionLostError, match="during a call"):
            envs.call("total")
        assert envs.call("total") == (0, 0, 0)
        assert envs.step([0, 0, 0])[3].all()


# Interrupts


@contextmanager
def interrupted_before_the_reset():
    """Interrupt a new session right before its slots are reset."""

    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RequestDispatcher, "_reset_slots", interrupted)
        with pytest.raises(KeyboardInterrupt):
            yield


@pytest.mark.parametrize("use", USES)
def test_next_call_resets_slots_after_interrupt(use):
    with (
        pair(Hosted(Cell, exclusive=True, lease=0.4)) as servers,
        servers.connected() as envs,
    ):
        envs.reset()
        envs.step([0, 0, 0])
        lost = envs.pool._dispatcher.link
        servers.restart()
        assert wait_until(lambda: lost.is_over)
        with interrupted_before_the_reset():
            envs.step([0, 0, 0])
        assert envs.pool.in_flight == 0
        assert USES[use](envs)
        envs.step([0, 0, 0])
        assert "crashed" not in envs.step([0, 0, 0])[4]


def test_slots_in_flight_are_received_after_interrupt(counters):
    with pair(counters) as servers, servers.connected() as envs:
        envs.reset()
        envs.step([0, 0, 0])
        envs.pool.begin_step([BLOCK] * 3)
        servers.restart()
        with interrupted_before_the_reset():
            envs.recv()
        assert results_of(envs.pool.recv()) == {k: loss(k, "NextStep", 1) for k in range(3)}


def test_restarted_server_with_other_slots_is_rejected():
    with served(Cell, TCP) as first, proxied(first) as (proxy, through):
        other = shoal.serve({"it": "CartPole-v1"}, TCP)
        envs = shoal.connect(through, on_lost="truncate", timeout=20.0, shared_memory=False)
        envs.reset()
        proxy.port = int(other.url.rpartition(":")[2])
        proxy.cut()
        with pytest.raises(shoal.errors.SpaceMismatchError, match="other environments"):
            envs.step([0, 0, 0])
        envs.close()
        other.close()
