"""Malicious or unusual descriptions of spaces and values."""

import itertools
import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from msgspec import Raw, msgpack

import shoal
from shoal.errors import ProtocolError, RefusedError, RemoteError
from shoal.pools import InlinePool
from shoal.remote import Unsent
from shoal.remote._space_codec import decode_space, encode_space
from shoal.remote._value_codec import pack_values, unpack_values
from shoal.remote._wire import Kind
from tests.remote.mutations import MAX_REJECT_MEMORY, peak_of
from tests.remote.peers import Cell
from tests.remote.proxy import rewriting
from tests.remote.serving import TCP, connected, served

# Byte order

FOREIGN_DTYPES = np.dtype(">f4"), np.dtype(">i8")


def made_of(observation, action):
    class Made(gymnasium.Env):
        observation_space = observation
        action_space = action

    return lambda: InlinePool([Made])


FOREIGN_SPACES = {
    "observation": (spaces.Box(-1, 1, (2,), FOREIGN_DTYPES[0]), spaces.Discrete(2)),
    "action": (spaces.Discrete(2), spaces.Box(-1, 1, (2,), FOREIGN_DTYPES[0])),
    "part": (
        spaces.Dict(near=spaces.Discrete(2), far=spaces.Box(-1, 1, (2,), FOREIGN_DTYPES[0])),
        spaces.Discrete(2),
    ),
}


@pytest.mark.parametrize("where", FOREIGN_SPACES)
def test_space_in_foreign_byte_order_is_rejected(where):
    """Its bytes would be decoded as other numbers."""
    with (
        served(made_of(*FOREIGN_SPACES[where])) as url,
        pytest.raises(RefusedError, match=r"dtype >f4 cannot be sent, use float32"),
    ):
        shoal.connect(url, timeout=20.0)


def test_array_in_foreign_byte_order_is_converted():
    for dtype in FOREIGN_DTYPES:
        decoded = unpack_values(pack_values(np.array([1, 2], dtype)))
        assert decoded.dtype == dtype.newbyteorder("=")
        assert decoded.tolist() == [1, 2]


# Small messages that describe large spaces


def box(*shape):
    return {"space": "Box", "shape": list(shape), "low": 0, "high": 1, "dtype": "|u1"}


def binary(*shape):
    return {"space": "MultiBinary", "n": list(shape)}


def many(part, count):
    return {"space": "Dict", "parts": [(str(key), part) for key in range(count)]}


LARGE = {
    "one box": box(1 << 25),
    "one box of many dimensions": box(*[2] * 25),
    "many boxes": many(box(1 << 16), 257),
    "many binaries": many(binary(1 << 16), 257),
    "a tuple of boxes": {"space": "Tuple", "parts": [box(1 << 16)] * 257},
    "one of many boxes": {"space": "OneOf", "parts": [box(1 << 16)] * 257},
    "boxes in dicts": many(many(box(1 << 16), 17), 17),
    "a sequence": {"space": "Sequence", "part": box(1 << 25), "stack": False},
    "a graph": {"space": "Graph", "node": box(1 << 24), "edge": box(1)},
    "one binary": binary(1 << 29),
    "one binary of two dimensions": binary(1 << 13, 1 << 13),
    "negative size": many(binary(-(1 << 30)), 2),
}


@pytest.mark.parametrize("what", LARGE)
def test_oversized_space_is_rejected(what):
    description = pack_values(LARGE[what])
    assert len(description) < 1 << 16
    with pytest.raises(ProtocolError, match="too large"):
        decode_space(unpack_values(description))


def test_oversized_space_is_rejected_before_allocation():
    for what in ("one box", "one binary", "a sequence"):
        assert peak_of(lambda what=what: decode_space(LARGE[what])) < MAX_REJECT_MEMORY


def test_largest_allowed_space():
    assert len(decode_space(many(binary(1 << 16), 256)).spaces) == 256


@pytest.mark.parametrize(
    ("space", "num_envs"),
    [
        (spaces.MultiBinary(1 << 16), (1 << 14) + 1),
        (spaces.MultiDiscrete([3] * 1024), (1 << 20) + 1),
        (spaces.Dict({str(k): spaces.MultiBinary(1 << 12) for k in range(16)}), (1 << 14) + 1),
        (spaces.Discrete(2), (1 << 24) + 1),
    ],
    ids=["binaries", "discretes", "dicts", "slots"],
)
@pytest.mark.parametrize("where", ["observation", "action"])
def test_oversized_slots_are_rejected_before_allocation(where, space, num_envs):
    described = {"observation": spaces.Discrete(2), "action": spaces.Discrete(2)} | {where: space}
    encoded = {name: encode_space(each) for name, each in described.items()}
    values = pack_values({**encoded, "batch": None, "metadata": {}})
    changes = {Kind.SESSION_INFO: {"num_envs": num_envs, "values": values}}
    with served(Cell, TCP) as url, rewriting(url, changes) as (_, through):

        def connect():
            shoal.connect(through, timeout=20.0, shared_memory=False)

        with pytest.raises(ProtocolError, match=r"too many|invalid session parameters"):
            connect()
        assert peak_of(connect) < MAX_REJECT_MEMORY


# Hash collisions

MODULUS = (1 << 61) - 1
"""The modulus of the hash of integers: all of its multiples have the hash 0."""


def colliding(count):
    return {key * MODULUS: None for key in range(1, count + 1)}


def packed_dict(keys):
    """Encode a dict with these keys without checking them."""
    pairs = [[Raw(pack_values(key)), None] for key in keys]
    return msgpack.encode(msgpack.Ext(2, msgpack.encode(pairs)))


def test_dict_of_colliding_tuples_is_rejected():
    # -1 and -2 have equal hashes, and so have tuples of them.
    keys = list(itertools.islice(itertools.product((-1, -2), repeat=16), 40_000))
    data = packed_dict(keys)
    start_time = time.process_time()
    with pytest.raises(ProtocolError, match="keys"):
        unpack_values(data)
    assert time.process_time() - start_time < 5.0


def test_dict_of_colliding_integers_is_rejected():
    keys = list(range(MODULUS, 60_000 * MODULUS, MODULUS))
    data = packed_dict(keys)
    start_time = time.monotonic()
    with pytest.raises(ProtocolError, match="too many keys"):
        unpack_values(data)
    assert time.monotonic() - start_time < 5.0  # building the dict would take minutes


def test_dict_that_would_be_rejected_is_not_sent():
    decoded = unpack_values(pack_values({"infos": colliding(300)}))
    assert isinstance(decoded["infos"], Unsent)
    assert decoded["infos"].kind == "dict"
    with pytest.raises(TypeError, match="cannot be sent"):
        pack_values(colliding(300), strict=True)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {1: "a", -5: "b"},
        {2**70: 1, (1, "a"): 2},
        {2**63: None, -(2**63): None},
        {None: 1, 2.5: 2, b"": 3},
        dict.fromkeys(range(5000)),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_other_dicts_round_trip(value):
    assert unpack_values(pack_values(value)) == value
    assert unpack_values(packed_dict(value)) == dict.fromkeys(value)


# Surrogates


HALF = "no file \udc80"


def test_surrogate_in_factory_error():
    def fails():
        error = ValueError(HALF)
        error.add_note(HALF)
        raise error

    with (
        served(fails) as url,
        pytest.raises(RefusedError, match=r"ValueError: no file \\udc80") as caught,
    ):
        shoal.connect(url, timeout=20.0)
    assert caught.value.__notes__ == [r"no file \udc80"]


@pytest.mark.parametrize("with_traceback", [False, True])
def test_surrogate_in_environment_error(with_traceback):
    class Raising(Cell):
        def say(self):
            error = RemoteError(HALF) if with_traceback else OSError(HALF)
            error.add_note(HALF)
            raise error

    envs = connected(Raising, timeout=20.0, server={"tracebacks": with_traceback})
    envs.reset()
    with pytest.raises((OSError, RemoteError), match=r"no file \\udc80"):
        envs.call("say")
    assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
    envs.close()
