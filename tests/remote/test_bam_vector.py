"""A vector over one GymAPI client."""

import gc
import tracemalloc

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from shoal.errors import ReceiveTimeoutError
from shoal.remote.bam import (
    BamVectorEnv,
    ErrorType,
    GenericGymClient,
    GymAPIError,
    GymFeedback,
    MockEnv,
    RequestType,
    make_bam_vec_env,
)
from tests.remote.gymapi import (
    BOX,
    FailingTransport,
    GatedTransport,
    RecordingTransport,
    ScriptedTransport,
    requested_slots,
    response,
    scripted,
)


def test_factory_arguments():
    calls = []

    def factory(**kwargs):
        calls.append(kwargs)
        return MockEnv(**kwargs)

    with make_bam_vec_env(factory, num_envs=5, obs=True, render_mode="rgb_array") as envs:
        assert isinstance(envs, BamVectorEnv)
        assert calls == [{"obs": True, "render_mode": "rgb_array"}]
        assert envs.single_env.num_envs == envs.num_envs == 5
        assert envs.render_mode == "rgb_array"
        assert envs.autoreset_mode is envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


@pytest.mark.parametrize("num_envs", [0, -1])
def test_num_envs_must_be_positive(num_envs):
    with pytest.raises(ValueError, match="num_envs"):
        make_bam_vec_env(pytest.fail, num_envs=num_envs)


def test_factory_must_make_a_client():
    with pytest.raises(TypeError, match="GenericGymClient"):
        make_bam_vec_env(lambda: gymnasium.make("CartPole-v1"))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3, start=5),
        spaces.MultiDiscrete([2, 3]),
        BOX,
        spaces.Dict(x=BOX, y=spaces.Discrete(2)),
        spaces.Tuple((BOX, spaces.MultiBinary(3))),
    ],
    ids=str,
)
def test_batched_spaces(space):
    with make_bam_vec_env(MockEnv, 3, observation_space=space, action_space=space) as envs:
        batched = gymnasium.vector.utils.batch_space(space, 3)
        assert envs.observation_space == envs.action_space == batched
        envs.action_space.seed(0)
        observations, _ = envs.reset(seed=0)
        assert observations in envs.observation_space
        for _ in range(5):
            observations, *_ = envs.step(envs.action_space.sample())
            assert observations in envs.observation_space


def test_observations_without_fixed_shape():
    space = spaces.Dict(words=spaces.Text(5), points=spaces.Sequence(BOX), x=BOX)
    with make_bam_vec_env(MockEnv, 2, observation_space=space) as envs:
        observations, infos = envs.reset(seed=3)
        assert len(observations["words"]) == len(observations["points"]) == 2
        assert all(word in space["words"] for word in observations["words"])
        assert infos == {}


def test_seed_of_each_slot():
    with make_bam_vec_env(MockEnv, 3) as envs:
        observations, _ = envs.reset(seed=42)
        envs.step([0, 1, 0])
        again, _ = envs.reset(seed=42)
    np.testing.assert_array_equal(observations, again)
    for slot in range(3):
        np.testing.assert_array_equal(observations[slot], MockEnv().reset(seed=42 + slot)[0])


def test_requests_per_step():
    transport = RecordingTransport()
    with make_bam_vec_env(
        MockEnv,
        3,
        transport=transport,
        terminated_fn=lambda *, step_count, env_idx, **_: env_idx == 1 and step_count == 1,
        reward_fn=lambda **_: 1.0,
    ) as envs:
        envs.reset(seed=1)
        ended = []
        for _ in range(4):
            _, rewards, terminated, _, _ = envs.step([0, 0, 0])
            ended.append((terminated.tolist(), rewards.tolist()))
    assert ended == [
        ([False] * 3, [1, 1, 1]),
        ([False, True, False], [1, 1, 1]),
        ([False] * 3, [1, 0, 1]),  # slot 1 was reset
        ([False] * 3, [1, 1, 1]),
    ]
    requests = [
        (each.header.request_type.name, [action.ns for action in each.action])
        for each in transport.requests
    ]
    assert requests == [
        ("RESET", []),
        ("STEP", ["0", "1", "2"]),
        ("STEP", ["0", "1", "2"]),
        ("STEP", ["0", "2"]),
        ("RESET", ["1"]),
        ("STEP", ["0", "1", "2"]),
        ("CLOSE", []),
    ]


def test_status_is_reported_in_info():
    script = [
        response(*(GymFeedback(observation=[0, k]) for k in range(3))),
        response(
            GymFeedback(observation=[1, 0], info='{"force": 2.5}'),
            GymFeedback(executed=False),
            GymFeedback(duplicate=0),
        ),
    ]
    with BamVectorEnv(lambda: scripted(*script), 3) as envs:
        envs.reset()
        observations, *_, infos = envs.step([0, 0, 0])
    np.testing.assert_array_equal(observations, [[1, 0], [0, 1], [1, 0]])
    assert infos["_status"].tolist() == [False, True, True]
    assert infos["status"][1:].tolist() == ["not executed", "duplicate observation"]
    assert infos["force"][0] == 2.5


@pytest.mark.parametrize(
    ("fails", "error"),
    [
        ("jammed", GymAPIError),
        (ConnectionError("jammed"), ConnectionError),
        # Not a ReceiveTimeoutError, since nothing is in flight any more.
        (ReceiveTimeoutError("jammed"), TimeoutError),
    ],
)
def test_failure_reports_slots_and_vector_is_usable(fails, error):
    transport = FailingTransport()
    with make_bam_vec_env(MockEnv, 2, transport=transport) as envs:
        envs.reset(seed=0)
        transport.fails = fails
        with pytest.raises(error, match="jammed") as caught:
            envs.step([0, 0])
        assert not isinstance(caught.value, ReceiveTimeoutError)
        assert "shoal: in slots [0, 1] of 2" in caught.value.__notes__
        transport.fails = None
        observations, *_ = envs.step([0, 0])
        assert observations.shape == (2, 4)


def test_failed_step_drops_results_but_keeps_finished_slots():
    going_on, ended = (
        GymFeedback(observation=[0, 0]),
        GymFeedback(observation=[1, 1], truncated=True),
    )
    transport = ScriptedTransport(
        response(going_on, going_on, going_on),
        response(ended, going_on, going_on),
        response(ended, going_on),  # slots 1 and 2 are stepped
        response(code=ErrorType.FAILURE, message="jammed"),  # the reset of slot 0 fails
        response(going_on),
        response(going_on, going_on),
    )
    client = GenericGymClient(transport, observation_space=BOX, action_space=spaces.Discrete(2))
    with BamVectorEnv(lambda: client, 3) as envs:
        envs.reset()
        envs.step([0, 0, 0])
        with pytest.raises(GymAPIError, match="jammed"):
            envs.step([0, 0, 0])
        assert envs.pool.in_flight == 0
        envs.step([0, 0, 0])
    assert requested_slots(transport) == [[0, 1, 2], [1, 2], [2]]
    assert requested_slots(transport, RequestType.RESET) == [[], [0], [0, 1]]


def test_render_all_slots():
    with make_bam_vec_env(MockEnv, 3, color=True, render_mode="rgb_array") as envs:
        observations, _ = envs.reset(seed=0)
        pictures = envs.render()
    np.testing.assert_array_equal(pictures, observations["color_img"])


# Subsets of slots


def test_one_request_per_send():
    transport = RecordingTransport()
    with make_bam_vec_env(MockEnv, 5, transport=transport) as envs:
        envs.reset(seed=0)
        envs.send([1, 0, 1], [4, 0, 2])
        envs.send([0], np.array([False, True, False, False, False]))
        batch = envs.recv()
        assert batch.slots.tolist() == [4, 0, 2, 1]
        envs.send([1, 1], [3, 1])
        assert envs.recv(slots=[1]).slots.tolist() == [1]
        assert envs.recv(slots=[3]).slots.tolist() == [3]
    assert requested_slots(transport) == [[4, 0, 2], [1], [3, 1]]


def test_recv_while_client_is_busy():
    transport = GatedTransport()
    with make_bam_vec_env(MockEnv, 3, transport=transport) as envs:
        expected, _ = envs.reset(seed=0)
        envs.send([0], [2])
        assert envs.recv(min_slots=1).slots.tolist() == [2]
        transport.gate.clear()
        envs.send([0, 0], [0, 1])
        envs.send([0], [2])
        with pytest.raises(ReceiveTimeoutError, match="can still be received"):
            envs.recv(min_slots=1, timeout=0.05)
        np.testing.assert_array_equal(envs.pool.latest([0, 1]), expected[:2])
        transport.gate.set()
        assert envs.recv(slots=[2]).slots.tolist() == [2]
        assert envs.recv(min_slots=2).slots.tolist() == [0, 1]


def test_batch_size_first_come_first_served():
    with make_bam_vec_env(MockEnv, 4, batch_size=2) as envs:
        envs.reset(seed=0)
        for slot in (3, 1, 0, 2):
            envs.send([0], [slot])
        assert envs.recv().slots.tolist() == [3, 1]
        assert envs.recv().slots.tolist() == [0, 2]
        envs.send([0], [1])
        assert envs.recv().slots.tolist() == [1]


@pytest.mark.parametrize("batch_size", [0, 5])
def test_invalid_batch_size_is_rejected_first(batch_size):
    with pytest.raises(ValueError, match="batch_size"):
        make_bam_vec_env(pytest.fail, 4, batch_size=batch_size)


def test_cancel_steps_that_have_not_started():
    transport = GatedTransport()
    with make_bam_vec_env(MockEnv, 4, transport=transport) as envs:
        envs.reset(seed=0)
        transport.gate.clear()
        envs.send([0], [0])
        assert transport.started.wait(5.0)
        envs.send([1, 1], [1, 2])
        envs.send([1], [3])
        assert envs.cancel([0]) == []  # is running
        assert envs.cancel([2]) == [2]  # part of a request
        assert envs.cancel([3]) == [3]
        transport.gate.set()
        assert envs.recv().slots.tolist() == [0, 1]
        envs.send([1], [2])
        assert envs.recv().slots.tolist() == [2]
        assert envs.cancel() == []
    assert requested_slots(transport) == [[0], [1], [2]]


def test_cancelled_autoreset_happens_on_next_step():
    transport = GatedTransport()
    with make_bam_vec_env(
        MockEnv, 2, transport=transport, terminated_fn=lambda *, env_idx, **_: env_idx == 1
    ) as envs:
        envs.reset(seed=1)
        assert envs.step([0, 0])[2].tolist() == [False, True]
        transport.gate.clear()
        envs.send([0], [0])
        envs.send([0], [1])
        assert envs.cancel([1]) == [1]
        transport.gate.set()
        envs.recv()
        assert envs.step([0, 0])[2].tolist() == [False, False]
    assert requested_slots(transport, RequestType.RESET) == [[], [1]]


# Memory


class PaddedTransport:
    """Returns a new observation and a new info of this size with each response."""

    def __init__(self, size):
        self.size = size
        self.count = 0

    def step(self, request):
        self.count += 1
        slots = [action.ns for action in request.action] or [str(slot) for slot in range(SLOTS)]
        info = '{"note": "' + "x" * self.size + '"}'
        numbers = [float(self.count)] * self.size
        return response(
            *(GymFeedback(ns=slot, observation=list(numbers), info=info) for slot in slots)
        )

    def close(self):
        pass


SLOTS = 4096


@pytest.mark.slow
def test_only_newest_observation_is_retained():
    size = 64
    space = spaces.Box(0, np.inf, (size,), np.float32)
    client = GenericGymClient(
        PaddedTransport(size), observation_space=space, action_space=spaces.Discrete(2)
    )
    actions = np.zeros(SLOTS, np.int64)

    def kept():
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    with BamVectorEnv(lambda: client, SLOTS) as envs:
        tracemalloc.start()
        try:
            before = kept()
            envs.reset()
            used = []
            for _ in range(3):
                envs.step(actions)
                envs.send(actions[::2], np.arange(0, SLOTS, 2))
                envs.recv()
                used.append(kept() - before)
        finally:
            tracemalloc.stop()
    # The client and the pool each keep a copy; the header of an array has 112 bytes.
    observations = 2 * SLOTS * (4 * size + 112)
    assert max(used) < observations + SLOTS * 512
    assert abs(used[-1] - used[0]) < SLOTS
