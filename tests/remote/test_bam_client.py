"""The GymAPI client and its mock transport."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError
from gymnasium.utils.env_checker import check_env

from shoal.errors import (
    ObservationError,
    ReceiveTimeoutError,
    SlotNotResetError,
    StepResultError,
)
from shoal.remote._device import Device, Status
from shoal.remote.bam import (
    ErrorType,
    GenericGymClient,
    GymAction,
    GymAPIError,
    GymFeedback,
    MockEnv,
    MockTransport,
    RequestType,
    make_bam_vec_env,
)
from tests.remote.gymapi import BOX, RecordingTransport, request, response, scripted

# MockTransport


def declared(num_envs=3, **functions):
    transport = MockTransport()
    transport.declare(BOX, spaces.Discrete(2), num_envs, **functions)
    return transport


def actions_of(*slots):
    return [GymAction(ns=str(slot), discrete_action=[1]) for slot in slots]


def test_mock_returns_samples_and_bounded_rewards():
    transport = declared()
    first = transport.step(request(RequestType.RESET, seed=5))
    assert [answer.ns for answer in first.feedback] == ["0", "1", "2"]
    rewards = []
    for _ in range(50):
        got = transport.step(request(RequestType.STEP, actions_of(0, 1, 2)))
        assert got.header.error_code.value == ErrorType.SUCCESS
        for answer in got.feedback:
            assert np.float32(answer.observation) in BOX
            assert not answer.terminated
            rewards.append(answer.reward)
    assert min(rewards) < -0.8
    assert max(rewards) > 0.8
    assert np.abs(rewards).max() <= 1


def test_mock_is_reproducible():
    def respond(transport):
        requests = [
            request(RequestType.RESET, seed=5),
            request(RequestType.STEP, actions_of(0, 1, 2)),
        ]
        return [transport.step(one) for one in requests]

    transport = declared()
    first = respond(transport)
    assert respond(transport) == first == respond(declared())
    seen = [tuple(answer.observation) for got in first for answer in got.feedback]
    assert len(set(seen)) == 6  # slots differ


def test_mock_slots_are_independent():
    together, apart = declared(), declared()
    first = together.step(request(RequestType.RESET, seed=5)).feedback
    then = together.step(request(RequestType.STEP, actions_of(0, 1, 2))).feedback
    for slot in (2, 0, 1):
        (one,) = apart.step(request(RequestType.RESET, [GymAction(ns=str(slot))], seed=5)).feedback
        assert one == first[slot]
    for slot in (1, 2, 0):
        (one,) = apart.step(request(RequestType.STEP, actions_of(slot))).feedback
        assert one == then[slot]


def test_partial_reset_does_not_affect_other_slots():
    counts = {}

    def count(*, step_count, env_idx, obs, action):
        counts[env_idx] = step_count
        return 0.0

    transport = declared(reward_fn=count)
    transport.step(request(RequestType.RESET, seed=1))
    transport.step(request(RequestType.STEP, actions_of(0, 1, 2)))
    got = transport.step(request(RequestType.RESET, [GymAction(ns="1")]))
    assert [answer.ns for answer in got.feedback] == ["1"]
    transport.step(request(RequestType.STEP, actions_of(0, 1, 2)))
    assert counts == {0: 1, 1: 0, 2: 1}


def test_arguments_of_mock_functions():
    calls = []

    def reward(**arguments):
        calls.append(arguments)
        return np.float32(0.25)

    transport = declared(
        num_envs=2, reward_fn=reward, terminated_fn=lambda *, env_idx, **_: env_idx == 1
    )
    transport.step(request(RequestType.RESET, seed=1))
    got = transport.step(request(RequestType.STEP, actions_of(1, 0))).feedback
    assert [(answer.ns, answer.reward, answer.terminated) for answer in got] == [
        ("1", 0.25, True),
        ("0", 0.25, False),
    ]
    assert [(each["env_idx"], each["step_count"], each["action"]) for each in calls] == [
        (1, 0, 1),
        (0, 0, 1),
    ]
    np.testing.assert_array_equal(calls[0]["obs"], np.float32(got[0].observation))


@pytest.mark.parametrize(
    ("invalid", "why"),
    [
        (request(RequestType.STEP, actions_of(0)), "never reset"),
        (request(RequestType.RESET, [GymAction(ns="3")]), "out of range"),
        (request(RequestType.RESET, [GymAction(ns="left")]), "not the number"),
        (request(RequestType.RESET, [GymAction(ns="1"), GymAction(ns="1")]), "repeated"),
        (request(RequestType.RESET, seed=-9), "negative"),
        (request(RequestType.STEP), "no action"),
        (request(RequestType.NONE), "NONE"),
    ],
)
def test_mock_reports_invalid_requests(invalid, why):
    got = declared().step(invalid)
    assert got.header.error_code.value == ErrorType.FAILURE
    assert why in got.header.error_msg


@pytest.mark.parametrize("numbers", [[], [0, 1], [2]])
def test_mock_rejects_actions_outside_the_space(numbers):
    transport = declared()
    transport.step(request(RequestType.RESET))
    got = transport.step(request(RequestType.STEP, [GymAction(ns="0", discrete_action=numbers)]))
    assert got.header.error_code.value == ErrorType.FAILURE


def test_fixed_mock_response():
    fixed = response(GymFeedback(observation=[0.25, 0.5], reward=9.0))
    client = MockEnv(observation_space=BOX)
    client.transport.set_mock_response(fixed)
    np.testing.assert_array_equal(client.reset()[0], [0.25, 0.5])
    assert client.step(1)[1] == 9.0
    client.transport.set_mock_response(None)
    client.reset(seed=1)
    assert abs(client.step(1)[1]) <= 1
    client.close()


def test_unconfigured_mock_fails():
    got = MockTransport().step(request(RequestType.RESET))
    assert got.header.error_code.value == ErrorType.FAILURE


# The client


def test_client_is_device_and_environment():
    client = MockEnv()
    assert isinstance(client, Device)
    assert isinstance(client, gymnasium.Env)
    assert client.num_envs == 1
    assert client.single_observation_space == client.observation_space
    assert client.single_action_space == client.action_space == spaces.Discrete(2)
    check_env(client, skip_render_check=True)
    client.close()


def test_one_request_for_all_slots():
    transport = RecordingTransport()
    client = MockEnv(transport)
    client.num_envs = 3
    client.reset_slots([0, 1, 2], [7, 8, 9], None)
    feedbacks = client.step_slots([2, 0], [1, 0])
    assert len(transport.requests) == 2
    reset, step = transport.requests
    assert (reset.seed, reset.action, reset.header.request_type) == (7, [], RequestType.RESET)
    assert [(each.ns, each.discrete_action) for each in step.action] == [("2", [1]), ("0", [0])]
    assert step.env_name == "MockEnv"
    assert [feedback.status for feedback in feedbacks] == [Status.OK] * 2


@pytest.mark.parametrize("code", [ErrorType.FAILURE, ErrorType.UNDEFINED, 77])
def test_error_code_is_raised(code):
    client = scripted(response(code=code, message="the gripper is stuck"))
    with pytest.raises(GymAPIError, match="the gripper is stuck"):
        client.reset()
    assert issubclass(GymAPIError, RuntimeError)


def test_not_executed_keeps_the_observation():
    client = scripted(
        response(GymFeedback(observation=[0.25, 0.5])),
        response(GymFeedback(executed=False, info='{"why": "blocked"}')),
        response(GymFeedback(executed=False, observation=[1, 1])),
    )
    client.reset()
    observation, reward, terminated, truncated, info = client.step(0)
    np.testing.assert_array_equal(observation, [0.25, 0.5])
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info == {"why": "blocked", "status": "not executed"}
    observation[:] = 9  # does not affect the client
    observation, *_, info = client.step(0)
    np.testing.assert_array_equal(observation, [1, 1])
    assert info == {"status": "not executed"}


def test_error_of_one_slot_is_reported_in_info():
    client = scripted(
        response(*(GymFeedback(observation=[0, k / 4]) for k in range(3))),
        response(
            GymFeedback(observation=[1, 0]),
            GymFeedback(info='{"status": "error", "why": "slipped"}', executed=False),
            GymFeedback(observation=[1, 1], info='{"status": "error"}', truncated=True),
        ),
        num_envs=3,
    )
    client.reset_slots([0, 1, 2], [None] * 3, None)
    fine, slipped, lost = client.step_slots([0, 1, 2], [0, 0, 0])
    assert fine.status is Status.OK
    assert slipped.status is lost.status is Status.ERROR
    np.testing.assert_array_equal(slipped.observation, [0, 0.25])  # the newest observation
    assert slipped.info["why"] == "slipped"
    np.testing.assert_array_equal(lost.observation, [1, 1])
    assert lost.truncated


def test_other_values_of_info_status_are_kept():
    client = scripted(response(GymFeedback(observation=[0, 0], info='{"status": "gripping"}')))
    assert client.reset()[1] == {"status": "gripping"}


def test_step_without_observation_is_rejected():
    client = scripted(response(GymFeedback(executed=False)))
    with pytest.raises(ObservationError):
        client.step(0)


def test_reset_ignores_executed():
    client = scripted(response(GymFeedback(executed=False, observation=[0, 0])))
    assert client.reset()[1] == {}


def test_duplicate_observation():
    answers = response(
        GymFeedback(duplicate=2, reward=1.0, info='{"n": 0}'),
        GymFeedback(observation=[0.5, 0.5], reward=2.0, info='{"n": 1}'),
        GymFeedback(duplicate=1, reward=3.0),
    )
    client = scripted(answers, num_envs=3)
    feedbacks = client.step_slots([0, 1, 2], [0, 0, 0])
    for feedback in feedbacks:
        np.testing.assert_array_equal(feedback.observation, [0.5, 0.5])
    assert [feedback.status for feedback in feedbacks] == [
        Status.DUPLICATE,
        Status.OK,
        Status.DUPLICATE,
    ]
    assert [feedback.reward for feedback in feedbacks] == [1.0, 2.0, 3.0]
    assert [feedback.info for feedback in feedbacks] == [{"n": 0}, {"n": 1}, {}]
    assert feedbacks[0].observation is not feedbacks[1].observation


@pytest.mark.parametrize("repeated", [(0, -1), (1, 0), (5, -1)])
def test_invalid_duplicate_is_rejected(repeated):
    answers = [GymFeedback(observation=[0, 0], duplicate=number) for number in repeated]
    with pytest.raises(StepResultError, match="repeats"):
        scripted(response(*answers), num_envs=2).step_slots([0, 1], [0, 0])


def test_feedback_is_assigned_by_ns():
    answers = [GymFeedback(ns=str(slot), observation=[slot / 4, 0]) for slot in (2, 0, 1)]
    client = scripted(response(*answers), num_envs=3)
    feedbacks = client.step_slots([0, 1, 2], [0, 0, 0])
    assert [feedback.observation[0] for feedback in feedbacks] == [0, 0.25, 0.5]


@pytest.mark.parametrize("names", [("1", "1"), ("0", "2"), ("0", ""), ("0",), ("", "", "")])
def test_feedback_of_other_slots_is_rejected(names):
    answers = [GymFeedback(ns=name, observation=[0, 0]) for name in names]
    with pytest.raises(StepResultError):
        scripted(response(*answers), num_envs=2).step_slots([0, 1], [0, 0])


def test_ns_that_is_not_a_number_is_ignored():
    answers = [
        GymFeedback(ns=name, observation=[k, 0]) for k, name in enumerate(["/left", "/right"])
    ]
    feedbacks = scripted(response(*answers), num_envs=2).step_slots([0, 1], [0, 0])
    assert [feedback.observation[0] for feedback in feedbacks] == [0, 1]


def test_reset_options_are_rejected():
    client = MockEnv(RecordingTransport())
    client.reset(options={})
    with pytest.raises(ValueError, match="options"):
        client.reset(options={"gentle": True})
    assert len(client.transport.requests) == 1


def test_durations_of_newest_response():
    def timed(process, transport, code=ErrorType.SUCCESS):
        got = response(GymFeedback(observation=[0, 0]), code=code)
        got.header.process_duration, got.header.transport_duration = process, transport
        return got

    client = scripted(timed(1.5, 0.25), timed(2.0, 0.5, ErrorType.FAILURE))
    assert client.durations == (0.0, 0.0)
    client.reset()
    assert client.durations == (1.5, 0.25)
    with pytest.raises(GymAPIError):
        client.step(0)
    assert (client.durations.process, client.durations.transport) == (2.0, 0.5)


def test_expected_duration_is_sent():
    client = MockEnv(RecordingTransport(), expected_duration=2.5)
    client.reset(seed=1)
    client.step(0)
    client.close()
    calls = [each.header.expected_duration for each in client.transport.requests]
    assert calls == [0.0, 2.5, 0.0]
    assert client.expected_duration([0], [0]) == 2.5


def test_expected_duration_can_be_overridden():
    class Pushing(MockEnv):
        def expected_duration(self, slots, actions):
            return sum(float(action) for action in actions) + len(slots) * 10

    with make_bam_vec_env(Pushing, 3, transport=RecordingTransport()) as envs:
        envs.reset(seed=1)
        envs.send([1, 1], [2, 0])
        envs.recv()
        assert envs.single_env.transport.requests[-1].header.expected_duration == 22.0


@pytest.mark.parametrize("seconds", [-1.0, np.inf, np.nan])
def test_invalid_expected_duration_is_rejected(seconds):
    with pytest.raises(ValueError, match="expected_duration"):
        MockEnv(expected_duration=seconds)


def test_close_is_sent_once():
    transport = RecordingTransport()
    client = MockEnv(transport)
    client.reset(seed=1)
    client.close()
    client.close()
    kinds = [each.header.request_type for each in transport.requests]
    assert kinds == [RequestType.RESET, RequestType.CLOSE]
    assert transport.closed == 1
    with pytest.raises(ClosedEnvironmentError):
        client.step(0)


def test_transport_is_closed_if_server_is_gone():
    class Deaf(RecordingTransport):
        def step(self, request):
            raise ReceiveTimeoutError("nobody")

    client = MockEnv(Deaf())
    client.close()
    assert client.transport.closed == 1


def test_failed_close_warns_and_closes_the_transport():
    class Refusing(RecordingTransport):
        def step(self, request):
            raise GymAPIError("not now")

    client = MockEnv(Refusing())
    with pytest.warns(UserWarning, match="not now"):
        client.close()
    assert client.transport.closed == 1


def test_parts_of_mock_observations():
    shapes = {"obs": (4,), "color_img": (32, 32, 3), "depth_img": (32, 32, 1)}
    client = MockEnv(obs=True, color=True, depth=True)
    assert {key: part.shape for key, part in client.observation_space.items()} == shapes
    assert client.observation_space["color_img"].dtype == np.uint8
    assert client.reset(seed=0)[0] in client.observation_space
    assert list(MockEnv(depth=True).observation_space) == ["depth_img"]
    assert MockEnv().observation_space == spaces.Box(-1, 1, (4,), np.float32)
    with pytest.raises(ValueError, match="do not pass another"):
        MockEnv(obs=True, observation_space=BOX)


def test_env_to_mock():
    with gymnasium.make("Pendulum-v1") as pendulum:
        client = MockEnv(env_to_mock=pendulum)
        assert client.observation_space == pendulum.observation_space
        assert client.action_space == pendulum.action_space
        client.reset(seed=0)
        assert client.step([0.5])[0] in pendulum.observation_space
        assert MockEnv(env_to_mock=pendulum, action_space=spaces.Discrete(3)).action_space.n == 3


def test_render_returns_colour_image_or_grey():
    client = MockEnv(color=True, render_mode="rgb_array")
    with pytest.raises(SlotNotResetError):
        client.render()
    observation, _ = client.reset(seed=0)
    np.testing.assert_array_equal(client.render(), observation["color_img"])
    grey = MockEnv(render_mode="rgb_array").render()
    assert grey.shape == (32, 32, 3)
    assert grey.dtype == np.uint8
    assert MockEnv().render() is None
    with pytest.raises(NotImplementedError):
        scripted(render_mode="rgb_array").render()
    with pytest.raises(ValueError, match="render_mode"):
        MockEnv(render_mode="human")


def test_set_action_space():
    client = scripted(action_space=None)
    with pytest.raises(RuntimeError, match="action space"):
        client.step(0)
    with pytest.raises(ValueError, match="action space"):
        make_bam_vec_env(lambda: client)
    client = MockEnv()
    client.set_action_space(spaces.Discrete(9, start=3))
    client.reset(seed=0)
    client.step(11)
    assert client.single_action_space == client.action_space == spaces.Discrete(9, start=3)


def test_observation_space_is_required():
    with pytest.raises(TypeError, match="observation_space"):
        GenericGymClient(MockTransport())
