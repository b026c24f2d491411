"""One vector over several GymAPI clients, each with its own transport."""

import threading
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError, NoAsyncCallError
from gymnasium.utils.env_checker import data_equivalence

from shoal.errors import (
    InvalidActionError,
    ReceiveTimeoutError,
    SlotNotResetError,
    SpaceMismatchError,
)
from shoal.remote.bam import GymAPIError, MockEnv, RequestType, make_bam_vec_env
from shoal.testing import PoolConformance
from tests.remote.gymapi import (
    FailingTransport,
    GatedTransport,
    RecordingTransport,
    requested_slots,
)
from tests.remote.peers import wait_until


def several(*transports, num_envs=2, **kwargs):
    return make_bam_vec_env(
        [partial(MockEnv, transport) for transport in transports], num_envs, **kwargs
    )


def ends_after(steps):
    return {"terminated_fn": lambda *, step_count, **_: step_count == steps}


class ClientConformance(PoolConformance):
    test_a_finished_slot_is_refused_when_autoreset_is_disabled = (
        None  # autoreset cannot be disabled
    )

    def counts(self, num_envs):
        raise NotImplementedError

    def make_pool(self, num_envs, **options):
        counts = self.counts(num_envs)
        vector = make_bam_vec_env([MockEnv] * len(counts), counts, **ends_after(7))
        vector.pool.vector = vector  # keeps the vector alive while only the pool is used
        return vector.pool


class TestOne(ClientConformance):
    def counts(self, num_envs):
        return [num_envs]


class TestTwo(ClientConformance):
    def counts(self, num_envs):
        return [2, num_envs - 2]


class TestOneForEachSlot(ClientConformance):
    def counts(self, num_envs):
        return [1] * num_envs


# The vector


def test_slot_order():
    with several(*(RecordingTransport() for _ in range(3)), num_envs=[2, 1, 3]) as envs:
        assert envs.num_envs == 6
        assert [client.num_envs for client in envs.clients] == [2, 1, 3]
        assert envs.action_space == spaces.MultiDiscrete([2] * 6)
        with pytest.raises(AttributeError, match="3 clients"):
            _ = envs.single_env


def test_num_envs_applies_to_each_client():
    with several(RecordingTransport(), RecordingTransport(), num_envs=3) as envs:
        assert [client.num_envs for client in envs.clients] == [3, 3]


def test_list_of_one_factory():
    with several(RecordingTransport(), num_envs=[3]) as envs:
        assert envs.clients == (envs.single_env,)
        assert envs.num_envs == 3


def test_rollout_is_independent_of_the_division_of_slots():
    def run(factories, num_envs):
        with make_bam_vec_env(factories, num_envs, obs=True, color=True, **ends_after(3)) as envs:
            envs.action_space.seed(0)
            seen = [envs.reset(seed=11)]
            for _ in range(6):
                seen.append(envs.step(envs.action_space.sample()))
            mask = np.array([False, True, True, False])
            seen.append(envs.reset(seed=5, options={"reset_mask": mask}))
            seen.append(envs.step(envs.action_space.sample()))
            return seen

    alone = run(MockEnv, 4)
    assert data_equivalence(run([MockEnv, MockEnv], 2), alone)
    assert data_equivalence(run([MockEnv, MockEnv], [1, 3]), alone)


def test_one_request_per_client_and_step():
    transports = [RecordingTransport(), RecordingTransport()]
    with several(*transports, num_envs=[2, 3]) as envs:
        envs.reset(seed=1)
        envs.step([0] * 5)
    assert [requested_slots(transport) for transport in transports] == [[[0, 1]], [[0, 1, 2]]]


def test_clients_work_concurrently():
    meeting = threading.Barrier(2)

    class Meeting(RecordingTransport):
        def step(self, request):
            if request.header.request_type is not RequestType.CLOSE:
                meeting.wait(5.0)
            return super().step(request)

    with several(Meeting(), Meeting()) as envs:
        envs.reset(seed=0)
        envs.step([0, 0, 0, 0])


def test_render_and_attributes_of_each_slot():
    with make_bam_vec_env([MockEnv] * 2, [1, 2], color=True, render_mode="rgb_array") as envs:
        observations, _ = envs.reset(seed=0)
        np.testing.assert_array_equal(envs.render(), observations["color_img"])
        ids = [client.client_id for client in envs.clients]
        assert envs.get_attr("client_id") == (ids[0], ids[1], ids[1])


# Subsets of slots


def test_fast_client_does_not_wait_for_slow_one():
    slow, fast = GatedTransport(), RecordingTransport()
    with several(slow, fast) as envs:
        envs.reset(seed=0)
        slow.gate.clear()
        envs.send([0, 0, 0, 0])
        batch = envs.recv(min_slots=2, timeout=5.0)
        assert sorted(batch.slots.tolist()) == [2, 3]
        envs.send([1], [3])
        assert envs.recv(slots=[3], timeout=5.0).slots.tolist() == [3]
        with pytest.raises(ReceiveTimeoutError):
            envs.recv(slots=[0], timeout=0.05)
        slow.gate.set()
        assert envs.recv(slots=[1, 0]).slots.tolist() == [1, 0]
    assert requested_slots(slow) == [[0, 1]]
    assert requested_slots(fast) == [[0, 1], [1]]


def test_one_request_per_client_and_send():
    transports = [RecordingTransport(), RecordingTransport()]
    with several(*transports, num_envs=[2, 3]) as envs:
        envs.reset(seed=0)
        envs.send([1, 0, 1], [4, 0, 2])
        envs.send([0], [1])
        assert sorted(envs.recv().slots.tolist()) == [0, 1, 2, 4]
    assert requested_slots(transports[0]) == [[0], [1]]
    assert requested_slots(transports[1]) == [[2, 0]]
    assert [action.discrete_action for action in transports[1].requests[1].action] == [[1], [1]]


def test_batch_size_first_come_first_served():
    slow, fast = GatedTransport(), RecordingTransport()
    with several(slow, fast, num_envs=[1, 2], batch_size=2) as envs:
        envs.reset(seed=0)
        slow.gate.clear()
        envs.send([0, 0, 0])
        assert sorted(envs.recv(timeout=5.0).slots.tolist()) == [1, 2]
        slow.gate.set()
        assert envs.recv(timeout=5.0).slots.tolist() == [0]


def test_cancel_for_each_client():
    transports = [GatedTransport(), GatedTransport()]
    with several(*transports) as envs:
        envs.reset(seed=0)
        for transport in transports:
            transport.gate.clear()
        envs.send([0, 0], [0, 2])
        assert all(transport.started.wait(5.0) for transport in transports)
        envs.send([1], [1])
        envs.send([1], [3])
        assert envs.cancel([0, 3]) == [3]
        assert envs.cancel() == [1]
        assert envs.pool.in_flight == 2
        for transport in transports:
            transport.gate.set()
        assert sorted(envs.recv().slots.tolist()) == [0, 2]
        with pytest.raises(NoAsyncCallError):
            envs.recv()
        assert envs.step([0] * 4)[1].shape == (4,)
    assert requested_slots(transports[0]) == requested_slots(transports[1]) == [[0], [0, 1]]


def test_cancel_after_timeout_of_step():
    transports = [GatedTransport(), RecordingTransport()]
    with several(*transports) as envs:
        envs.reset(seed=0)
        transports[0].gate.clear()
        envs.pool.begin_step([0] * 4)
        with pytest.raises(ReceiveTimeoutError):
            envs.pool.end_step(0.05)
        assert envs.cancel() == []  # one is running, the other is done
        transports[0].gate.set()
        assert envs.recv().slots.tolist() == [0, 1, 2, 3]


# Failures


def step_all(envs):
    envs.step([0] * 5)


def reset_all(envs):
    envs.reset(seed=1)


def send_and_receive_all(envs):
    envs.send([0] * 5)
    envs.recv()


@pytest.mark.parametrize(
    ("fails", "error"),
    [(None, GymAPIError), (ConnectionError, ConnectionError), (ReceiveTimeoutError, TimeoutError)],
)
@pytest.mark.parametrize("use", [step_all, reset_all, send_and_receive_all])
def test_failure_reports_slots_and_vector_is_usable(use, fails, error):
    transports = [RecordingTransport(), FailingTransport()]
    with several(*transports, num_envs=[3, 2]) as envs:
        envs.reset(seed=0)
        transports[1].fails = "jammed" if fails is None else fails("jammed")
        with pytest.raises(error, match="jammed") as caught:
            use(envs)
        assert caught.value.__notes__ == ["shoal: in slots [3, 4] of 5"]
        assert not isinstance(caught.value, ReceiveTimeoutError)
        if use is send_and_receive_all:  # slots of the other client can still be received
            assert envs.recv().slots.tolist() == [0, 1, 2]
        assert envs.pool.in_flight == 0
        transports[1].fails = None
        assert envs.reset(seed=2)[0].shape == (5, 4)
        assert envs.step([0] * 5)[0].shape == (5, 4)


def test_rejected_reset_keeps_slots_in_flight():
    with several(RecordingTransport(), RecordingTransport()) as envs:
        envs.reset(seed=0)
        envs.send([0, 0], [1, 3])
        with pytest.raises(Exception, match="in flight"):
            envs.reset()
        assert envs.recv().slots.tolist() == [1, 3]


def test_nothing_is_sent_if_one_slot_was_never_reset():
    transports = [RecordingTransport(), RecordingTransport()]
    with several(*transports) as envs:
        envs.pool.reset([0, 1, 2])
        envs.recv()
        with pytest.raises(SlotNotResetError, match="slot 3"):
            envs.step([0] * 4)
        with pytest.raises(InvalidActionError):
            envs.send([0, 0, 9], [0, 1, 2])
        assert envs.pool.in_flight == 0
    assert requested_slots(transports[0]) == []


# Construction and closing


def test_close_closes_all_clients():
    class Deaf(RecordingTransport):
        def step(self, request):
            if request.header.request_type is RequestType.CLOSE:
                raise ConnectionError("deaf")
            return super().step(request)

    transports = [Deaf(), RecordingTransport()]
    envs = several(*transports)
    envs.reset(seed=0)
    envs.close()
    assert [transport.closed for transport in transports] == [1, 1]
    with pytest.raises(ClosedEnvironmentError):
        envs.step([0] * 4)


def test_clients_start_nothing_while_closing():
    transports = [GatedTransport(), GatedTransport()]
    envs = several(*transports)
    envs.reset(seed=0)
    for transport in transports:
        transport.gate.clear()
    for slot in (0, 2, 1, 3):
        envs.send([0], [slot])
    assert all(transport.started.wait(5.0) for transport in transports)
    closing = threading.Thread(target=envs.close)
    closing.start()
    assert wait_until(lambda: envs.pool.pools[1]._closed)
    transports[1].gate.set()
    transports[0].gate.set()
    closing.join(5.0)
    assert [requested_slots(transport) for transport in transports] == [[[0]], [[0]]]
    assert [transport.closed for transport in transports] == [1, 1]


def test_clients_are_closed_if_a_factory_fails():
    first = RecordingTransport()

    def broken(**kwargs):
        raise OSError("no such cell")

    with pytest.raises(OSError, match="no such cell") as caught:
        make_bam_vec_env([partial(MockEnv, first), broken, pytest.fail], 2)
    assert caught.value.__notes__ == ["shoal: making client 1 of 3"]
    assert first.closed == 1


def test_clients_with_different_spaces_are_closed():
    transports = [RecordingTransport(), RecordingTransport()]
    sizes = [partial(MockEnv, transports[0]), partial(MockEnv, transports[1], obs=True)]
    with pytest.raises(SpaceMismatchError):
        make_bam_vec_env(sizes, 2)
    assert [transport.closed for transport in transports] == [1, 1]


def test_shared_transport_is_rejected():
    transport = RecordingTransport()
    with pytest.raises(ValueError, match="each needs its own"):
        several(transport, transport)
    with pytest.raises(ValueError, match="each needs its own"):
        make_bam_vec_env([MockEnv, MockEnv], 2, transport=transport)


@pytest.mark.parametrize("num_envs", [[2], [2, 2, 2], [2, 0], []])
def test_invalid_num_envs_is_rejected_first(num_envs):
    with pytest.raises(ValueError, match="num_envs"):
        make_bam_vec_env([pytest.fail, pytest.fail], num_envs)


def test_empty_list_of_factories_is_rejected():
    with pytest.raises(ValueError, match="0 clients"):
        make_bam_vec_env([], 2)


def test_stable_baselines3_accepts_several_clients():
    from shoal.sb3 import as_vec_env

    vec_env = as_vec_env(several(RecordingTransport(), RecordingTransport(), **ends_after(2)))
    vec_env.reset()
    dones = [vec_env.step(np.zeros(4, np.int64))[2].tolist() for _ in range(3)]
    assert dones == [[False] * 4, [False] * 4, [True] * 4]
    vec_env.close()
