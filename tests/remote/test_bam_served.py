"""Hosted GymAPI clients: status, deadlines, durations."""

import time
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence

import shoal
from shoal.errors import ReceiveTimeoutError
from shoal.remote.bam import GenericGymClient, GymFeedback, MockEnv, make_bam_vec_env
from tests.remote.gymapi import (
    BOX,
    FailingTransport,
    GatedTransport,
    ScriptedTransport,
    requested_slots,
    response,
)
from tests.remote.peers import wait_until
from tests.remote.serving import connected


def statuses(infos, rows):
    status = infos.get("status", [None] * rows)
    has_status = infos.get("_status", [False] * rows)
    return [status[row] if has_status[row] else "ok" for row in range(rows)]


def observations_of(*numbers, **more):
    return [GymFeedback(observation=[number, number], **more) for number in numbers]


@pytest.mark.parametrize("divided", [False, True])
def test_remote_rollout_equals_local_rollout(divided):
    more = {"terminated_fn": lambda *, step_count, **_: step_count == 2}

    def run(envs):
        with envs:
            envs.action_space.seed(0)
            seen = [envs.reset(seed=11)]
            for _ in range(5):
                seen.append(envs.step(envs.action_space.sample()))
            return [*seen, np.array(envs.render())]

    settings = {"obs": True, "color": True, "render_mode": "rgb_array", **more}
    here = run(make_bam_vec_env(MockEnv, 4, **settings))
    if divided:
        served = connected(partial(make_bam_vec_env, [MockEnv, MockEnv], 2, **settings))
    else:
        served = connected(lambda: MockEnv(**settings), num_envs=4, url="tcp://127.0.0.1:0")
    assert data_equivalence(run(served), here)


@pytest.mark.parametrize("url", [None, "tcp://127.0.0.1:0"])
def test_status_of_each_slot_is_sent(url):
    transport = ScriptedTransport(
        response(*observations_of(0, 0.25, 0.5, 0.75)),
        response(
            *observations_of(1, info='{"force": 2.5}'),
            GymFeedback(executed=False),
            GymFeedback(duplicate=0, reward=2.0),
            GymFeedback(info='{"status": "error", "why": "slipped"}', truncated=True),
        ),
        response(*observations_of(-1, -1, -1)),
        response(*observations_of(0)),
    )
    client = GenericGymClient(transport, observation_space=BOX, action_space=spaces.Discrete(2))
    with connected(lambda: client, num_envs=4, url=url) as envs:
        envs.reset()
        observations, rewards, _, truncated, infos = envs.step([0] * 4)
        assert statuses(infos, 4) == ["ok", "not executed", "duplicate observation", "error"]
        assert observations[:, 0].tolist() == [1, 0.25, 1, 0.75]
        assert rewards.tolist() == [0, 0, 2, 0]
        assert truncated.tolist() == [False, False, False, True]
        assert infos["force"][0] == 2.5
        assert infos["why"][3] == "slipped"
        observations, *_, infos = envs.step([0] * 4)
        assert statuses(infos, 4) == ["ok"] * 4
    assert requested_slots(transport) == [[0, 1, 2, 3], [0, 1, 2]]  # the last slot was reset


@pytest.mark.parametrize("url", [None, "tcp://127.0.0.1:0"])
def test_missed_deadline_returns_status(url):
    transport = GatedTransport()
    with connected(lambda: MockEnv(transport), num_envs=3, url=url, timeout=10.0) as envs:
        initial, _ = envs.reset(seed=0)
        transport.gate.clear()
        envs.send([0, 0], [0, 1], deadlines=0.1)
        envs.send([0], [2], deadlines=0.1)
        batch = envs.recv()
        assert dict(zip(batch.slots.tolist(), statuses(batch.infos, 3), strict=True)) == {
            0: "timeout",
            1: "timeout",
            2: "not executed",  # the client was busy and had not sent it
        }
        np.testing.assert_array_equal(batch.observations, initial[batch.slots])
        transport.gate.set()
        *_, infos = envs.step([1, 1, 1])
        assert infos["_late"].tolist() == [True, True, False]
    stepped = [slot for slots in requested_slots(transport) for slot in slots]
    assert sorted(stepped) == [0, 0, 1, 1, 2]


def test_slow_client_does_not_block_others():
    transports = [GatedTransport(), GatedTransport()]
    factories = [partial(MockEnv, transport) for transport in transports]
    with connected(partial(make_bam_vec_env, factories, [1, 2]), timeout=10.0) as envs:
        envs.reset(seed=0)
        transports[0].gate.clear()
        infos = envs.step([0, 0, 0], deadlines=0.3)[4]
        assert statuses(infos, 3) == ["timeout", "ok", "ok"]
        envs.send([0], [0])
        envs.cancel([0])
        assert statuses(envs.recv().infos, 1) == ["not executed"]
        transports[0].gate.set()
        assert envs.step([0, 0, 0])[4]["_late"].tolist() == [True, False, False]
    assert requested_slots(transports[0]) == [[0], [0]]


def test_cancel_over_the_network():
    transport = GatedTransport()
    with connected(lambda: MockEnv(transport), num_envs=3, timeout=10.0) as envs:
        envs.reset(seed=0)
        transport.gate.clear()
        envs.send([0], [0])
        assert transport.started.wait(5.0)
        envs.send([0, 0], [1, 2])
        envs.cancel()
        batch = envs.recv(slots=[1, 2])
        assert statuses(batch.infos, 2) == ["not executed"] * 2
        transport.gate.set()
        assert statuses(envs.recv().infos, 1) == ["ok"]
    assert requested_slots(transport) == [[0]]


def test_expected_duration_and_durations_over_the_network():
    class Slow(GatedTransport):
        def step(self, request):
            time.sleep(request.header.expected_duration * 0.6)
            got = super().step(request)
            got.header.process_duration = request.header.expected_duration
            return got

    client = partial(MockEnv, expected_duration=1.5)
    with connected(lambda: client(Slow()), num_envs=2, timeout=0.5) as envs:
        envs.reset(seed=0)
        envs.step([0, 0])  # takes 0.9 seconds
        assert [tuple(each) for each in envs.get_attr("durations")] == [(1.5, 0.0)] * 2


@pytest.mark.parametrize("num_clients", [1, 2])
def test_vector_is_usable_after_failure(num_clients):
    transports = [FailingTransport() for _ in range(num_clients)]
    factories = [partial(MockEnv, transport) for transport in transports]
    with connected(partial(make_bam_vec_env, factories, 4 // num_clients), timeout=5.0) as envs:
        envs.reset(seed=0)
        failures = {
            "jammed": RuntimeError,
            ReceiveTimeoutError("jammed"): TimeoutError,
            ConnectionError("jammed"): ConnectionError,
        }
        for transports[-1].fails, error in failures.items():
            with pytest.raises(error, match="jammed") as caught:
                envs.step([0] * 4)
            slots = [0, 1, 2, 3] if num_clients == 1 else [2, 3]
            assert f"shoal: in slots {slots} of 4" in caught.value.__notes__
            assert not isinstance(caught.value, ReceiveTimeoutError)
            assert envs.pool.in_flight == 0
        transports[-1].fails = None
        assert envs.step([0] * 4)[0].shape == (4, 4)


def test_hosted_client_is_closed_with_its_session():
    transport = GatedTransport()
    host = shoal.serve({"cell": lambda: MockEnv(transport)}, "tcp://127.0.0.1:0")
    with shoal.connect(f"{host.url}/cell", num_envs=2) as envs:
        envs.reset(seed=0)
    assert wait_until(lambda: transport.closed == 1)
    host.close()
