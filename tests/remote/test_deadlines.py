"""Deadlines of slots, cancellation, and expected durations."""

import threading
import time

import gymnasium
import pytest
from gymnasium.error import AlreadyPendingCallError

import shoal
from shoal.pools import ThreadPool
from shoal.remote import Hosted
from shoal.remote._device_pool import DevicePool
from tests.remote.peers import (
    LONG,
    SOON,
    CancellableCell,
    Cell,
    ExpectingCell,
    WakeableCell,
    wait_until,
)
from tests.remote.serving import connected, served
from tests.remote.test_timeouts import LONG_TIMEOUT, alarm, set_timeout, sleepers, slow


@pytest.fixture(autouse=True)
def _wake_up():
    alarm.clear()
    yield
    alarm.set()


def status_of(infos, rows=3):
    return [
        infos["status"][row] if "status" in infos and infos["_status"][row] else "ok"
        for row in range(rows)
    ]


@pytest.mark.parametrize("how", ["step", "send"])
@pytest.mark.parametrize(
    ("deadlines", "late"),
    [
        ([0.3, LONG_TIMEOUT, LONG_TIMEOUT], [0]),
        (0.3, [0, 1, 2]),
        ([0.3, LONG_TIMEOUT, 0.2], [0, 2]),
    ],
)
def test_missed_deadlines_return_status(how, deadlines, late):
    envs = connected(sleepers(ThreadPool, 3), timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    is_late = [slot in late for slot in range(3)]
    actions = [LONG if each else 0 for each in is_late]
    start_time = time.monotonic()
    if how == "step":
        observations, rewards, _, _, infos = envs.step(actions, deadlines=deadlines)
    else:
        envs.send(actions, deadlines=deadlines)
        _, observations, rewards, _, _, infos = envs.recv()
    assert 0.25 < time.monotonic() - start_time < SOON
    assert status_of(infos) == ["timeout" if each else "ok" for each in is_late]
    assert observations.tolist() == [[slot, 0 if slot in late else 1] for slot in range(3)]
    assert rewards.tolist() == [0.0 if each else 1.0 for each in is_late]
    alarm.set()
    observations, rewards, _, _, infos = envs.step([0, 0, 0])
    assert status_of(infos) == ["ok"] * 3
    assert infos["_late"].tolist() == is_late
    first = {key: value[0] for key, value in infos["late"].items() if key[0] != "_"}
    assert first.pop("observation").tolist() == [0, 1]
    assert first == {
        "reward": 1.0,
        "terminated": False,
        "truncated": False,
    }
    assert observations.tolist() == [[0, 2], [1, 2], [2, 2]]
    assert "late" not in envs.step([0, 0, 0])[4]
    envs.close()


def test_late_results_in_every_info_format():
    for form in ("dict", "list"):
        alarm.clear()
        envs = connected(sleepers(ThreadPool, 2), timeout=LONG_TIMEOUT, info_format=form)
        envs.reset(seed=0)
        envs.step([LONG, 0], deadlines=[0.1, LONG_TIMEOUT])
        alarm.set()
        infos = envs.step([5, 0])[4]
        if form == "dict":
            assert infos["took"].tolist() == [5, 0]
            assert infos["late"]["reward"][0] == 1.0
        else:
            assert infos[0]["took"] == 5
            assert infos[0]["late"]["reward"] == 1.0
            assert infos[1] == {"took": 0}
        envs.close()


def test_step_that_has_not_started_by_its_deadline_is_not_executed():
    envs = connected(sleepers(ThreadPool, 2), timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    assert status_of(envs.step([LONG, 0], deadlines=[0.1, LONG_TIMEOUT])[4], 2) == ["timeout", "ok"]
    envs.send([0], [0], deadlines=0.1)
    batch = envs.recv()
    assert status_of(batch.infos, 1) == ["not executed"]
    assert batch.observations.tolist() == [[0, 0]]
    alarm.set()
    assert wait_until(lambda: envs.call("count") == (1, 1))
    observations, _, _, _, infos = envs.step([0, 0])
    assert observations.tolist() == [[0, 2], [1, 2]]
    assert infos["_late"].tolist() == [True, False]
    envs.close()


def test_late_slot_does_not_block_others():
    envs = connected(sleepers(ThreadPool, 3), timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    envs.step([LONG, 0, 0], deadlines=[0.1, LONG_TIMEOUT, LONG_TIMEOUT])
    envs.send([0], [0])  # waits for the late step
    start_time = time.monotonic()
    envs.send([0], [1], deadlines=LONG_TIMEOUT)
    batch = envs.recv(slots=[1])
    assert time.monotonic() - start_time < SOON
    assert status_of(batch.infos, 1) == ["ok"]
    alarm.set()
    assert envs.recv().observations.tolist() == [[0, 2]]
    envs.close()


def test_deadline_per_slot_of_a_waiting_request():
    envs = connected(sleepers(ThreadPool, 2), timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    envs.step([LONG, LONG], deadlines=0.1)
    start_time = time.monotonic()
    envs.send([0, 0], deadlines=[0.1, LONG_TIMEOUT])
    assert status_of(envs.recv(slots=[0]).infos, 1) == ["not executed"]
    assert time.monotonic() - start_time < SOON
    alarm.set()
    assert status_of(envs.recv(slots=[1]).infos, 1) == ["ok"]
    assert envs.call("count") == (1, 2)
    envs.close()


@pytest.mark.parametrize("deadlines", [0.0, -1.0, [1.0, 0.0], float("nan"), [1.0, 1.0, 1.0]])
def test_invalid_deadlines(deadlines):
    envs = connected(sleepers(), timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"deadlines|broadcast"):
        envs.step([0, 0], deadlines=deadlines)
    assert envs.pool.in_flight == 0
    assert envs.step([0, 0])[0].tolist() == [[0, 1], [1, 1]]
    envs.close()


# Devices


@pytest.mark.parametrize("exclusive", [False, True])
def test_late_results_of_a_device(exclusive):
    cell = WakeableCell()
    envs = connected(Hosted(lambda: cell, exclusive=exclusive), timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    start_time = time.monotonic()
    infos = envs.step([LONG, 0, 0], deadlines=[1.0, 1.1, 1.0])[4]  # enough time to start
    assert time.monotonic() - start_time < SOON
    assert status_of(infos) == ["timeout"] * 3
    envs.send([0], [0], deadlines=0.05)
    assert status_of(envs.recv(slots=[0]).infos, 1) == ["not executed"]
    assert cell.executed == []
    cell.woken.set()
    infos = envs.step([0, 0, 0])[4]
    assert infos["late"]["reward"][0] == 0.5
    assert envs.call("total")[0] == 6
    assert len(cell.executed) == 2
    envs.close()
    assert cell.is_closed == 1


def test_cancel_steps_that_have_not_started():
    cell = WakeableCell()
    envs = connected(lambda: cell, timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    envs.send([LONG], [0])
    assert cell.running.wait(LONG_TIMEOUT)
    envs.send([1, 1], [1, 2])
    start_time = time.monotonic()
    envs.cancel([1, 2])
    batch = envs.recv(slots=[1, 2])
    assert time.monotonic() - start_time < SOON
    assert status_of(batch.infos, 2) == ["not executed"] * 2
    assert batch.observations.tolist() == [[1, 0], [2, 0]]
    cell.woken.set()
    assert envs.recv().observations.tolist() == [[0, 1]]
    assert [slots for slots, _ in cell.executed] == [[0]]
    assert envs.step([1, 1, 1])[0].tolist() == [[0, 2], [1, 1], [2, 1]]
    envs.close()


def test_running_device_is_cancelled():
    cell = CancellableCell()
    envs = connected(lambda: cell, timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    envs.send([LONG, LONG, LONG])
    assert cell.running.wait(LONG_TIMEOUT)
    start_time = time.monotonic()
    envs.cancel()
    batch = envs.recv()
    assert time.monotonic() - start_time < SOON
    assert status_of(batch.infos) == ["not executed"] * 3
    assert cell.executed == []
    envs.close()


def test_cancel_without_slots_in_flight():
    envs = connected(Cell, timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    envs.cancel()
    envs.cancel([0, 2])
    assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
    envs.close()


def test_cancel_reset_that_has_not_started():
    cell = WakeableCell(reset_seconds=LONG / 1000)
    envs = connected(lambda: cell, timeout=LONG_TIMEOUT)
    envs.pool.reset([0])
    envs.pool.reset([1])
    start_time = time.monotonic()
    envs.cancel([1])
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.recv(slots=[1])
    assert time.monotonic() - start_time < SOON
    cell.woken.set()
    assert envs.recv().slots.tolist() == [0]
    envs.close()


class WakeableExpectingCell(ExpectingCell, WakeableCell):
    """Returns the expected duration of a step that is not woken."""


@pytest.mark.parametrize(("exclusive", "seconds"), [(False, 1.0), slow(True, 2.5)])
def test_expected_duration_extends_the_timeout(exclusive, seconds):
    cell = WakeableExpectingCell()
    envs = connected(Hosted(lambda: cell, exclusive=exclusive, lease=1.5), timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    set_timeout(envs, 0.4)
    threading.Timer(seconds, cell.woken.set).start()
    assert envs.step([LONG, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
    set_timeout(envs, LONG_TIMEOUT)
    envs.close()


@pytest.mark.parametrize("max_inflight", [slow(1), 2])
def test_cancel_close_and_heartbeat_with_max_inflight_requests(max_inflight):
    lost = threading.Event()
    cell = WakeableCell()
    hosted = Hosted(lambda: cell, exclusive=True, lease=1.2, safe_state=lost.set)
    envs = connected(hosted, timeout=LONG_TIMEOUT, server={"max_inflight": max_inflight})
    envs.reset(seed=0)
    for slot in range(max_inflight):
        envs.send([LONG], [slot])
    with pytest.raises(AlreadyPendingCallError, match="the server accepts at most"):
        envs.send([0], [2])
    time.sleep(1.6)  # several heartbeats
    envs.cancel([1])
    cell.woken.set()
    assert envs.recv(min_slots=1).slots.tolist() in ([0], [1])
    envs.close()
    assert not lost.is_set()


def test_other_results_are_kept_if_a_slot_fails():
    class Failing(Cell):
        def step_slots(self, slots, actions):
            if 0 in slots:
                raise ArithmeticError("slot 0 is jammed")
            return super().step_slots(slots, actions)

    pool = DevicePool(Failing(), 3)
    pool.reset()
    pool.recv()
    pool.send([0], [0])
    pool.send([0], [1])
    wait_until(lambda: len(pool._worker.done) == 2)
    with pytest.raises(ArithmeticError, match="jammed"):
        pool.recv()
    assert pool.recv(slots=[1], timeout=1.0).observations.tolist() == [[1, 1]]
    pool.close()


def test_remote_vector_can_be_hosted():
    with served(sleepers(ThreadPool, 2)) as inner:
        envs = connected(lambda: shoal.connect(inner, timeout=LONG_TIMEOUT), timeout=LONG_TIMEOUT)
        envs.reset(seed=0)
        assert envs.step([0, 0])[0].tolist() == [[0, 1], [1, 1]]
        infos = envs.step([LONG, 0], deadlines=[0.1, LONG_TIMEOUT])[4]
        assert status_of(infos, 2) == ["timeout", "ok"]
        alarm.set()
        assert envs.step([0, 0])[4]["late"]["reward"][0] == 2.0
        envs.close()
