"""Several servers as one vector: deadlines, cancellation and statistics."""

import pytest
from gymnasium.error import AlreadyPendingCallError

import shoal
from shoal.remote import Hosted
from tests.remote.peers import LONG, CancellableCell, Cell, WakeableCell, wait_until
from tests.remote.proxy import proxied
from tests.remote.serving import TCP, served

SLOTS = 6


@pytest.fixture
def two():
    """Two cells, and a vector over both that has been reset."""

    def two(cell=WakeableCell, **options):
        for _ in range(2):
            cells.append(cell())
            hosts.append(served(lambda made=cells[-1]: made))
        urls = [host.__enter__() for host in hosts]
        vectors.append(shoal.connect(urls, timeout=20.0, **options))
        vectors[-1].reset()
        return cells, vectors[-1]

    cells, hosts, vectors = [], [], []
    yield two
    for cell in cells:
        if isinstance(cell, WakeableCell):
            cell.woken.set()
    for each in (*vectors, *hosts):
        each.__exit__(None, None, None)


def statuses(batch):
    """Return the status of each slot in a batch that has one."""
    status = batch.infos.get("status", [None] * len(batch.slots))
    return dict(zip(batch.slots.tolist(), status, strict=True))


# Deadlines


def test_one_deadline_for_all_slots(two):
    cells, envs = two()
    observations, rewards, _, _, infos = envs.step([LONG] * SLOTS, deadlines=0.1)
    assert infos["status"].tolist() == ["timeout"] * SLOTS
    assert not rewards.any()
    assert observations[:, 1].tolist() == [0] * SLOTS
    for cell in cells:
        cell.woken.set()
    assert wait_until(lambda: all(cell.total() == 3 for cell in cells))
    observations, _, _, _, infos = envs.step([0] * SLOTS)
    assert infos["_late"].all()
    assert observations[:, 1].tolist() == [2] * SLOTS


@pytest.mark.parametrize("how", ["step", "send"])
def test_deadline_per_slot(how, two):
    _, envs = two()
    deadlines = [60.0, 60.0, 60.0, 0.1, 0.1, 0.1]
    actions = [0, 0, 0, LONG, LONG, LONG]
    if how == "step":
        observations, _, _, _, infos = envs.step(actions, deadlines=deadlines)
        status = infos["status"].tolist()
    else:
        envs.send(actions, deadlines=deadlines)
        batch = envs.recv()
        observations, status = batch.observations, list(statuses(batch).values())
    assert status == [None] * 3 + ["timeout"] * 3
    assert observations[:, 1].tolist() == [1, 1, 1, 0, 0, 0]


def test_deadlines_in_slot_order(two):
    cells, envs = two()
    envs.send([LONG, 0], [4, 1], deadlines=[0.1, 60.0])
    assert statuses(envs.recv(slots=[4, 1])) == {4: "timeout", 1: None}
    assert cells[0].executed == [([1], [0])]


@pytest.mark.parametrize("deadlines", [0.0, -1.0, [1.0] * 3, [1.0] * 5 + [0.0]])
@pytest.mark.parametrize("how", ["step", "send"])
def test_invalid_deadlines_are_not_sent(how, deadlines, two):
    cells, envs = two()
    with pytest.raises(ValueError, match="deadlines must be"):
        getattr(envs, how)([0] * SLOTS, deadlines=deadlines)
    assert envs.pool.in_flight == 0
    assert [cell.executed for cell in cells] == [[], []]


# Cancellation


def test_cancel_on_each_server(two):
    cells, envs = two()
    envs.send([LONG, LONG], [0, 3])
    assert all(cell.running.wait(10.0) for cell in cells)
    envs.send([1, 1], [1, 4])
    envs.send([1], [5])  # separately: slots that are sent together are one call of the device
    envs.cancel([5, 1])
    assert statuses(envs.recv(slots=[1, 5])) == {1: "not executed", 5: "not executed"}
    for cell in cells:
        cell.woken.set()
    assert sorted(envs.recv().slots) == [0, 3, 4]
    assert [sum(cell.steps.values()) for cell in cells] == [1, 2]


def test_running_devices_are_cancelled_on_each_server(two):
    cells, envs = two(CancellableCell)
    envs.send([LONG] * SLOTS)
    assert all(cell.running.wait(10.0) for cell in cells)
    envs.cancel()
    batch = envs.recv()
    assert statuses(batch) == dict.fromkeys(range(SLOTS), "not executed")
    assert [cell.executed for cell in cells] == [[], []]


def test_cancel_only_on_servers_of_the_slots(two):
    cells, envs = two(CancellableCell)
    envs.send([LONG] * SLOTS)
    assert all(cell.running.wait(10.0) for cell in cells)
    envs.cancel([3, 4, 5])
    assert sorted(envs.recv(min_slots=3).slots) == [3, 4, 5]
    assert not cells[0].stopped.is_set()
    with pytest.raises(AlreadyPendingCallError, match="slot 0 is in flight"):
        envs.step([0] * SLOTS)
    envs.cancel()
    assert sorted(envs.recv().slots) == [0, 1, 2]


# Statistics


def test_combined_stats(two):
    _, envs = two(Cell)
    before = envs.stats()
    assert [each.requests for each in before.servers] == [1, 1]
    envs.send([0, 0], [0, 1])
    envs.recv()
    for _ in range(3):
        envs.step([20, 0, 0, 0, 0, 0])
    stats = envs.stats()
    one, other = stats.servers
    assert (one.requests, other.requests) == (5, 4)
    assert stats.requests == 9
    assert stats.bytes_sent == one.bytes_sent + other.bytes_sent
    assert stats.bytes_received == one.bytes_received + other.bytes_received
    assert one.servers == other.servers == ()
    assert stats.round_trip == max(one.round_trip, other.round_trip) >= 0.02
    assert stats.round_trip_p95 == max(one.round_trip_p95, other.round_trip_p95)
    assert stats.server_time == max(one.server_time, other.server_time) >= 0.02
    assert one.transport in stats.transport
    assert other.transport in stats.transport


def test_reconnects_are_counted_per_server():
    with (
        served(Cell, TCP) as one,
        served(Cell, TCP) as other,
        proxied(other) as (proxy, through),
        shoal.connect([one, through], on_lost="resume", timeout=20.0, shared_memory=False) as envs,
    ):
        envs.reset()
        proxy.cut()
        assert envs.step([0] * SLOTS)[0][:, 1].tolist() == [1] * SLOTS
        stats = envs.stats()
        assert [each.reconnects for each in stats.servers] == [0, 1]
        assert stats.reconnects == 1


def test_owner_of_two_exclusive_vectors():
    with (
        served(Hosted(Cell, exclusive=True, lease=5.0)) as one,
        served(Hosted(Cell, exclusive=True, lease=5.0)) as other,
        shoal.connect([one, other], timeout=20.0) as envs,
    ):
        envs.reset()
        with pytest.raises(shoal.errors.LeaseError):
            shoal.connect(other, timeout=20.0)
        assert envs.step([0] * SLOTS)[0][:, 1].tolist() == [1] * SLOTS
