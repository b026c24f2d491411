"""Mutated messages are decoded as plain values, or rejected."""

import random
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces import GraphInstance
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import msgpack

from shoal.errors import ProtocolError
from shoal.remote import Unsent
from shoal.remote._batch_meta import unpack_batch_meta
from shoal.remote._messages import (
    CallRequest,
    ClientHello,
    ExpectedDuration,
    Failure,
    Rejection,
    ResetRequest,
    ServerHello,
    SessionEnded,
    SessionInfo,
    StepRequest,
    pack_message,
    unpack_message,
)
from shoal.remote._space_codec import decode_space, encode_space
from shoal.remote._value_codec import pack_values, unpack_values
from shoal.testing import ProbeEnv
from tests.remote.mutations import FUZZ, MAX_MEMORY, mutated, peak_of


def seeds_of_values():
    rng = np.random.default_rng(0)
    return [
        pack_values(value)
        for value in (
            {"a": 1, "b": [1.5, None, True, "text", b"bytes"], "c": (1, (2, 3))},
            {"array": rng.random((3, 4)), "scalar": np.float32(2), "big": 2**90, 3: "three"},
            [[], "events", [(0, {"time": 3, "detail": {"pushed": 1.0}})], None],
            np.array([None, {"x": 1}, (2,)], object),
            np.array(["ab", "cde"]),
            np.array([b"ab", b"cde"]),
            GraphInstance(np.zeros((2, 2)), None, None),
            {"unsent": object(), "text": np.str_("x")},
            encode_space(ProbeEnv.observation_space),
        )
    ]


READERS = {
    "values": (unpack_values, seeds_of_values()),
    "infos": (
        lambda data: unpack_batch_meta(bytearray(data), 0, 1),
        [
            pack_values([[], "events", [(0, {"time": 3})], None]),
            pack_values([[], "events", [(0, {})], tuple(np.zeros(1) for _ in range(4))]),
            pack_values([[], "columns", {"x": np.zeros(1)}, None, None]),
            pack_values([[], "columns", {}, None, (np.array([0]), np.zeros((1, 2)), {})]),
        ],
    ),
    "spaces": (
        lambda data: decode_space(unpack_values(data)),
        [
            pack_values(encode_space(space))
            for space in (
                ProbeEnv.observation_space,
                ProbeEnv.action_space,
                spaces.Graph(spaces.Box(-1, 1, (2,)), spaces.Discrete(3)),
                spaces.Tuple((spaces.Text(3), spaces.MultiBinary(3), spaces.MultiDiscrete([2, 3]))),
            )
        ],
    ),
    **{
        kind.__name__: (partial(unpack_message, kind), [pack_message(message)])
        for kind, message in (
            (ServerHello, ServerHello(1, 1, b"nonce")),
            (
                ClientHello,
                ClientHello(1, "it", 3, b"proof", client="machine/1", values=pack_values({"a": 1})),
            ),
            (SessionInfo, SessionInfo(b"s", 0, 1, "NextStep", None, pack_values({}), 3, 3, 1.0)),
            (Rejection, Rejection("why", "so", ("note",))),
            (StepRequest, StepRequest((0.5, 1.0), pack_values([[], {}]))),
            (ResetRequest, ResetRequest((0, 1), pack_values([[None, 3], None]))),
            (CallRequest, CallRequest("label", False, (0,), pack_values([[], {}]))),
            (Failure, Failure("Boom", "ValueError", "it", ("note",), "", True, (0, 1))),
            (ExpectedDuration, ExpectedDuration(1.5)),
            (SessionEnded, SessionEnded("lease", "taken")),
        )
    },
}


def mutate(reader, count, seed):
    """Decode mutated messages; return how many were valid."""
    read, originals = READERS[reader]
    rng = random.Random(seed)
    for original in originals:
        read(original)
    valid = 0
    for _ in range(count):
        data = mutated(rng, rng.choice(originals)) if rng.random() < 0.9 else rng.randbytes(40)
        with suppress(ProtocolError):
            read(data)
            valid += 1
    return valid


EACH = -(-100_000 // len(READERS))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reader", READERS)
def test_mutated_messages_are_decoded_or_rejected_in_little_memory(reader):
    valid = []
    assert peak_of(lambda: valid.append(mutate(reader, EACH, 1))) < MAX_MEMORY
    # Some mutations must be valid, and some must not.
    assert EACH / 50 < valid[0] < EACH * 0.9


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("reader", READERS)
def test_many_mutated_messages_are_decoded_or_rejected(reader, seed):
    assert peak_of(lambda: mutate(reader, 25_000, 100 + seed)) < MAX_MEMORY


@FUZZ
@given(st.binary(max_size=400))
@example(b"\xd6\xff\x00\x00\x00\x01")
def test_random_bytes_are_decoded_or_rejected(data):
    for code in (None, *range(12)):
        packed = data if code is None else msgpack.encode(msgpack.Ext(code, data))
        with suppress(ProtocolError):
            assert_plain(unpack_values(packed))


def assert_plain(value):
    if isinstance(value, dict):
        for key, item in value.items():
            assert_plain(key)
            assert_plain(item)
    elif isinstance(value, list | tuple):
        for item in value:
            assert_plain(item)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        assert_plain(value.ravel().tolist())
    else:
        plain = (bool, int, float, complex, str, bytes, np.ndarray, np.generic, Unsent)
        assert value is None or isinstance(value, plain), type(value)
