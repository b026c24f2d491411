"""GymAPI messages, and the encoding of seeds, actions and observations."""

import json
import sys

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import (
    ActionTypeError,
    InvalidActionError,
    MissingExtraError,
    ObservationError,
)
from shoal.remote.bam import (
    ActionCodec,
    GymAction,
    GymAPIRequest,
    GymAPIResponse,
    GymFeedback,
    MessageError,
    MockEnv,
    ObservationCodec,
    RequestType,
)
from shoal.remote.bam._messages import from_dict, from_json, to_dict, to_json
from shoal.remote.bam._resets import read_reset, reset_fields
from tests.remote.gymapi import (
    BOX,
    RecordingTransport,
    request,
    response,
)
from tests.strategies import FIXED, SPACES


def same(one, other):
    """Whether two values of a space are equal, bit for bit.

    Gymnasium samples a Box of shape () as an array or as a scalar, by its dtype; that may differ.
    """
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, str) or one is None:
        return one == other
    one, other = np.asarray(one), np.asarray(other)
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


# Messages


def test_request_fields():
    message = request(RequestType.STEP, [GymAction(ns="1", discrete_action=[3])], seed=7)
    assert to_dict(message) == {
        "header": {
            "client_id": "",
            "request_type": 1,
            "priority": 0,
            "expected_duration": 0.0,
            "blocking": True,
        },
        "seed": 7,
        "env_name": "",
        "action": [{"ns": "1", "discrete_action": [3], "continuous_action": []}],
    }
    assert from_dict(to_dict(message), GymAPIRequest) == message


def test_response_fields():
    message = response(GymFeedback(observation=[0.5], reward=1.0))
    plain = to_dict(message)
    assert plain["header"] == {
        "process_duration": 0.0,
        "transport_duration": 0.0,
        "error_code": {"value": 1},
        "error_msg": "",
    }
    assert list(plain["feedback"][0]) == [
        "ns", "observation", "reward", "terminated", "truncated", "executed", "duplicate", "info",
    ]  # fmt: skip
    assert from_json(to_json(message), GymAPIResponse) == message


def test_unknown_and_missing_fields():
    plain = {"observation": [1, 2], "color_image": {"data": ""}}
    assert from_dict(plain, GymFeedback) == GymFeedback(observation=[1.0, 2.0])


@pytest.mark.parametrize(
    ("plain", "where"),
    [
        ({"header": {}, "feedback": [{"observation": [0.0, "x"]}]}, "feedback[0].observation[1]"),
        ({"header": {}, "feedback": [{"reward": True}]}, "feedback[0].reward"),
        ({"header": {}, "feedback": [{"terminated": 1}]}, "feedback[0].terminated"),
        ({"header": {"error_code": 1}, "feedback": []}, "header.error_code"),
        ({"feedback": []}, "header"),
        ([], "GymAPIResponse"),
        (None, "GymAPIResponse"),
    ],
)
def test_wrong_type_is_reported_with_its_location(plain, where):
    with pytest.raises(MessageError) as caught:
        from_dict(plain, GymAPIResponse)
    assert where in str(caught.value)


def test_unknown_request_type_is_rejected():
    with pytest.raises(MessageError, match="request_type"):
        from_dict({"header": {"request_type": 9}}, GymAPIRequest)


@pytest.mark.parametrize("text", ["", "{", "nul", "[" * 100_000])
def test_invalid_json_is_rejected(text):
    with pytest.raises(MessageError):
        from_json(text, GymAPIResponse)


def test_special_floats_are_valid_json():
    sent = response(
        GymFeedback(observation=[np.nan, np.inf, -np.inf, -0.0], reward=np.nan, ns="NaN")
    )
    text = to_json(sent)

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    json.loads(text, parse_constant=refuse)
    (got,) = from_json(text, GymAPIResponse).feedback
    np.testing.assert_array_equal(got.observation, [np.nan, np.inf, -np.inf, 0.0])
    assert np.signbit(got.observation[3])
    assert np.isnan(got.reward)
    assert got.ns == "NaN"  # not a float field


def test_other_spellings_of_special_floats_are_read():
    bare = '{"header": {}, "feedback": [{"observation": [NaN, -Infinity, null, 1]}]}'
    (got,) = from_json(bare, GymAPIResponse).feedback
    np.testing.assert_array_equal(got.observation, [np.nan, -np.inf, np.nan, 1.0])


# Seeds


def test_consecutive_seeds_are_one_number():
    assert reset_fields([0, 1, 2], [42, 43, 44], 3) == (42, [])
    assert reset_fields([2], [44], 3) == (42, [GymAction(ns="2")])
    assert reset_fields([0, 1], [None, None], 2) == (0, [])


@given(st.data())
def test_slots_and_seeds_round_trip(data):
    num_envs = data.draw(st.integers(1, 5))
    slots = data.draw(
        st.lists(st.integers(0, num_envs - 1), min_size=1, max_size=num_envs, unique=True)
    )
    seed = st.none() | st.integers(0, 3) | st.integers(0, 2**62)
    seeds = data.draw(st.lists(seed, min_size=len(slots), max_size=len(slots)))
    number, actions = reset_fields(slots, seeds, num_envs)
    sent = from_json(to_json(request(RequestType.RESET, actions, number)), GymAPIRequest)
    decoded = read_reset(sent, num_envs)
    assert list(decoded.items()) == list(zip(slots, seeds, strict=True))


def test_seed_zero_is_a_seed():
    first, _ = MockEnv().reset(seed=0)
    again, _ = MockEnv().reset(seed=0)
    other, _ = MockEnv().reset(seed=1)
    none, _ = MockEnv().reset()
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (first != none).any()


# Encodings


def test_order_of_integers_and_floats():
    space = spaces.Dict(
        {
            "a": spaces.Tuple((spaces.Box(-9, 9, (2,)), spaces.Discrete(5, start=-2))),
            "b": spaces.Dict(c=spaces.MultiBinary(2), d=spaces.Box(-9, 9, (1, 2), np.float64)),
        }
    )
    action = {"a": ([1, 2], -2), "b": {"c": [1, 0], "d": [[3, 4]]}}
    message = ActionCodec(space).encode(action, ns="7")
    assert message == GymAction(
        ns="7", discrete_action=[-2, 1, 0], continuous_action=[1.0, 2.0, 3.0, 4.0]
    )
    assert ObservationCodec(space).encode(
        {"a": (np.float32([1, 2]), -2), "b": {"c": np.int8([1, 0]), "d": np.array([[3.0, 4.0]])}}
    ) == ([1.0, 2.0, -2.0, 1.0, 0.0, 3.0, 4.0], "")


@settings(max_examples=60, deadline=None)
@given(space=SPACES, seed=st.integers(0, 2**31))
def test_observations_round_trip(space, seed):
    space.seed(seed)
    codec = ObservationCodec(space)
    sent = space.sample()
    numbers, info = codec.encode(sent, {"lives": np.int64(3)})
    wire = from_json(to_json(GymFeedback(observation=numbers, info=info)), GymFeedback)
    got, infos = codec.decode(wire.observation, wire.info)
    assert same(got, sent)
    assert infos == {"lives": 3}


@settings(max_examples=60, deadline=None)
@given(space=FIXED | FIXED.map(lambda space: spaces.Dict(x=spaces.Tuple((space, space)))),
       seed=st.integers(0, 2**31))  # fmt: skip
def test_actions_round_trip(space, seed):
    space.seed(seed)
    codec = ActionCodec(space)
    sent = space.sample()
    got = codec.decode(from_json(to_json(codec.encode(sent)), GymAction))
    assert same(got, sent)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_round_trip_exactly(dtype):
    bits = np.random.default_rng(0).integers(0, 256, 4000 * np.dtype(dtype).itemsize, np.uint8)
    values = bits.view(dtype)
    values = values[np.isfinite(values)]
    values[:4] = [
        np.finfo(dtype).max,
        np.finfo(dtype).tiny,
        -0.0,
        np.finfo(dtype).smallest_subnormal,
    ]
    space = spaces.Box(-np.inf, np.inf, values.shape, dtype)
    wire = from_json(
        to_json(GymFeedback(observation=ObservationCodec(space).encode(values)[0])), GymFeedback
    )
    got, _ = ObservationCodec(space).decode(wire.observation)
    assert got.tobytes() == values.tobytes()
    sent = from_json(to_json(ActionCodec(space).encode(values)), GymAction)
    assert ActionCodec(space).decode(sent).tobytes() == values.tobytes()


def test_special_floats_in_a_sequence_round_trip():
    space = spaces.Sequence(spaces.Box(-np.inf, np.inf, (2,), np.float32))
    sent = (np.float32([np.inf, 1]), np.float32([np.nan, -np.inf]))
    numbers, info = ObservationCodec(space).encode(sent)
    got, _ = ObservationCodec(space).decode(numbers, info)
    np.testing.assert_array_equal(got, sent)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_action_that_is_not_finite_is_rejected(value):
    with pytest.raises(InvalidActionError, match="not finite"):
        ActionCodec(BOX).encode(np.array([0.0, value]))


@pytest.mark.parametrize(
    ("space", "action", "error"),
    [
        (spaces.Discrete(2), 2, InvalidActionError),
        (spaces.Discrete(2), -1, InvalidActionError),
        (spaces.Discrete(2), 0.5, ActionTypeError),
        (spaces.Discrete(2), [0], InvalidActionError),
        (spaces.Discrete(2), None, ActionTypeError),
        (spaces.Discrete(2), 2**70, ActionTypeError),
        (spaces.MultiDiscrete([2, 3]), [1, 3], InvalidActionError),
        (BOX, [0.0], InvalidActionError),
        (BOX, ["a", "b"], ActionTypeError),
        (spaces.Dict(x=BOX), {"y": [0, 0]}, InvalidActionError),
        (spaces.Tuple((BOX, BOX)), ([0, 0],), InvalidActionError),
    ],
)
def test_invalid_action_is_rejected(space, action, error):
    client = MockEnv(RecordingTransport(), action_space=space)
    client.reset(seed=0)
    with pytest.raises(error):
        client.step(action)
    assert [each.header.request_type for each in client.transport.requests] == [RequestType.RESET]


@pytest.mark.parametrize(
    ("space", "numbers"),
    [
        (BOX, [0.0]),
        (BOX, [0.0, 1e39]),
        (spaces.Discrete(3), [0.5]),
        (spaces.Discrete(3), [np.nan]),
        (spaces.Discrete(3), [2.0**60]),
        (spaces.Box(0, 255, (1,), np.uint8), [256.0]),
        (spaces.Box(0, 255, (1,), np.uint8), [-1.0]),
    ],
)
def test_invalid_observation_is_rejected(space, numbers):
    with pytest.raises(ObservationError):
        ObservationCodec(space).decode(numbers)


def test_inexact_integer_is_rejected():
    space = spaces.Box(-(2**62), 2**62, (1,), np.int64)
    numbers, _ = ObservationCodec(space).encode(np.array([-(2**53)]))
    assert ObservationCodec(space).decode(numbers)[0] == -(2**53)
    with pytest.raises(ObservationError, match=r"2\*\*53"):
        ObservationCodec(space).encode(np.array([2**53 + 1]))


@pytest.mark.parametrize("space", [spaces.Text(4), spaces.Dict(x=spaces.Sequence(BOX))])
def test_actions_without_fixed_shape_are_rejected(space):
    with pytest.raises(TypeError, match="no fixed shape"):
        MockEnv(action_space=space)


@pytest.mark.parametrize("info", ["[]", "3", "{", "no JSON"])
def test_info_must_be_a_json_object(info):
    with pytest.raises(MessageError):
        ObservationCodec(BOX).decode([0.0, 0.0], info)


def test_missing_msgspec_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("shoal.remote.bam")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "msgspec", None)
    with pytest.raises(MissingExtraError, match=r'pip install "shoal\[remote\]"'):
        import shoal.remote.bam  # noqa: F401
