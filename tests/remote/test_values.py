"""Encoding of plain values, unsupported values, and malicious input."""

import struct
import time
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from gymnasium.spaces import GraphInstance
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from shoal.errors import ProtocolError
from shoal.remote import Unsent
from shoal.remote._value_codec import pack_values, unpack_values
from shoal.testing import assert_identical
from tests.remote.mutations import FUZZ, MAX_MEMORY, peak_of


def arrays_of(draw):
    dtype = draw(
        st.sampled_from(
            ["?", "i1", "u1", ">i2", "<u2", "i4", "u8", "f2", "<f4", ">f8", "c8", "c16"]
        )
    )
    shape = draw(st.sampled_from([(), (0,), (1,), (3,), (2, 3), (0, 4), (2, 1, 2)]))
    data = draw(st.binary(min_size=16 * 12, max_size=16 * 12))
    made = np.frombuffer(data, np.uint8)[: int(np.prod(shape)) * np.dtype(dtype).itemsize]
    if dtype == "?":
        made = made % 2
    array = made.view(dtype) if made.size else np.zeros(int(np.prod(shape)), dtype)
    return array.reshape(shape).astype(np.dtype(dtype).newbyteorder("="))


ARRAYS = st.composite(arrays_of)()
SCALARS = ARRAYS.filter(lambda array: array.size > 0).map(lambda array: array.reshape(-1)[0])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.complex_numbers(allow_nan=False),
    st.floats(),
    TEXTS,
    st.binary(max_size=20),
    ARRAYS,
    SCALARS,
    TEXTS.map(np.str_),
    st.lists(TEXTS, max_size=3).map(lambda items: np.array(items, "U9")),
    st.lists(st.binary(max_size=4), min_size=1, max_size=3).map(
        lambda items: np.array(items, "S5")
    ),
    st.builds(GraphInstance, ARRAYS, st.none(), st.none()),
)
KEYS = st.one_of(
    st.integers(),
    TEXTS,
    st.booleans(),
    st.none(),
    st.tuples(st.integers(), TEXTS),
)


def _nested(children):
    return st.one_of(
        st.lists(children, max_size=4),
        st.lists(children, max_size=4).map(tuple),
        st.dictionaries(TEXTS, children, max_size=4),
        st.dictionaries(KEYS, children, max_size=3),
        st.lists(children, min_size=1, max_size=3).map(_as_objects),
    )


def _as_objects(items):
    array = np.empty(len(items), object)
    for k, item in enumerate(items):
        array[k] = item
    return array


VALUES = st.recursive(LEAVES, _nested, max_leaves=12)


@FUZZ
@given(VALUES)
def test_values_round_trip(value):
    assert_identical(unpack_values(pack_values(value)), value)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda v: [v],
        lambda v: (v,),
        lambda v: {"k": v},
        lambda v: {1: v},
        lambda v: _as_objects([v]),
    ],
)
@pytest.mark.parametrize("depth", [5, 20, 39, 40, 60, 300])
def test_every_encoded_value_can_be_decoded(wrap, depth):
    value = 1
    for _ in range(depth):
        value = wrap(value)
    with suppress(RecursionError):  # from repr of a deeply nested value
        got = unpack_values(pack_values(value))
        if depth < 39:
            assert_identical(got, value)


HALF = Unsent("str", r"'\udcff'")
"""A surrogate, as in file names that are not valid UTF-8."""

OBJECT = object()
UNSENT = {
    "half a character": ("\udcff", HALF),
    "a key of half a character": ({"\udcff": 1}, {HALF: 1}),
    "half a character in a list": (["x", "\udcff"], ["x", HALF]),
    "half a character in a dict": ({1: "\udcff"}, {1: HALF}),
    "half a character of NumPy": (
        np.str_("\udcff"),
        Unsent("str_", repr(np.str_("\udcff")).replace("\udcff", r"\udcff")),
    ),
    "an object": (OBJECT, Unsent("object", repr(OBJECT))),
    "an object in the depth": ({"deep": [OBJECT]}, {"deep": [Unsent("object", repr(OBJECT))]}),
    "an object among objects": (
        np.array([1, OBJECT], object),
        np.array([1, Unsent("object", repr(OBJECT))], object),
    ),
    "a set": ({1, 2}, Unsent("set", "{1, 2}")),
    "a date": (
        np.datetime64("2020-01-01"),
        Unsent("datetime64", repr(np.datetime64("2020-01-01"))),
    ),
    "a structure": (
        np.zeros(2, [("a", "<i8")]),
        Unsent("ndarray", "array([(0,), (0,)], dtype=[('a', '<i8')])"),
    ),
    "a long double": (np.longdouble(1), Unsent("longdouble", repr(np.longdouble(1)))),
    "a slice": (slice(3), Unsent("slice", "slice(None, 3, None)")),
    "a range": (range(3), Unsent("range", "range(0, 3)")),
    "a function": (print, Unsent("builtin_function_or_method", "<built-in function print>")),
    "a class": (Unsent, Unsent("type", "<class 'shoal.remote._value_codec.Unsent'>")),
}


@pytest.mark.parametrize("what", UNSENT)
def test_unsupported_values_become_unsent(what):
    value, expected = UNSENT[what]
    found = unpack_values(pack_values({"ok": 1, "value": value}))
    assert_identical(found, {"ok": 1, "value": expected})


@pytest.mark.parametrize("what", UNSENT)
def test_unsupported_values_raise_in_strict_mode(what):
    with pytest.raises(TypeError, match="cannot be sent"):
        pack_values({"ok": 1, "value": UNSENT[what][0]}, strict=True)


def test_array_of_surrogates_round_trips():
    value = np.array(["\udcff"])
    assert_identical(unpack_values(pack_values(value, strict=True)), value)


# Invalid arrays


def raw_array(code, shape, data=b"", kind=5):
    """Encode an array with an arbitrary header."""
    head = struct.pack("<12sB", code, len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
    return msgpack.encode(msgpack.Ext(kind, head + data))


def test_valid_array_is_decoded():
    """Shows that the other tests do not fail for another reason."""
    assert_identical(unpack_values(raw_array(b"<i4", (2,), bytes(8))), np.zeros(2, np.int32))


@pytest.mark.parametrize("kind", [5, 6], ids=["array", "scalar"])
@pytest.mark.parametrize(
    "code",
    [
        *("|O", "O", "object", "<M8[s]", "<m8[s]", "|V8", ">i4", "=i4", "i4", ">f8", "<f16", "<U0"),
        *("<U-1", ">U1", "|S1,i4", "<i4,|O", "", "\xff", "int32"),
    ],
)
def test_unsupported_dtypes_are_rejected(code, kind):
    data = raw_array(code.encode("latin-1"), (1,), bytes(16), kind)
    sizes = [data, raw_array(code.encode("latin-1"), (2,), bytes(16), kind)]
    sizes += [raw_array(code.encode("latin-1"), (size,), bytes(8), kind) for size in (0, 1, 2)]
    for each in sizes:
        with pytest.raises(ProtocolError):
            unpack_values(each)
    if code.isascii():
        with pytest.raises(ProtocolError, match="not supported"):
            unpack_values(data)


def extension(code, parts):
    return msgpack.encode(msgpack.Ext(code, msgpack.encode(parts)))


def deep_tuples():
    data = msgpack.encode(1)
    while len(data) < 60_000:
        data = msgpack.encode(msgpack.Ext(1, b"\x91" + data))
    return data


READ, REFUSED = True, False
BOMBS = {
    "a wide text that is missing": (raw_array(b"<U8000000", (1,)), REFUSED),
    "no wide texts": (raw_array(b"<U8000000", (0,)), READ),
    "no wide bytes": (raw_array(b"|S999999999", (0,)), READ),
    "a text that is too wide": (raw_array(b"<U999999999", (0,)), REFUSED),
    "a text whose width has many digits": (raw_array(b"<U9999999999", (0,)), REFUSED),
    "many lists of no wide texts": (
        msgpack.encode([msgpack.Ext(5, struct.pack("<12sBQ", b"<U8000000", 1, 0))] * 1500),
        READ,
    ),
    "an empty array of many": (raw_array(b"<f8", (0, 2**40, 2**40)), REFUSED),
    "many empty arrays": (raw_array(b"<f8", (2**40, 0)), READ),
    "an array whose size wraps around": (raw_array(b"<f8", (2**61, 8)), REFUSED),
    "an array whose number wraps around": (raw_array(b"|i1", (2**32, 2**32)), REFUSED),
    "an array of 255 dimensions": (raw_array(b"|i1", (1,) * 255, b"\0"), REFUSED),
    "an array with more behind it": (raw_array(b"<f8", (1,), bytes(9)), REFUSED),
    "no array with more behind it": (raw_array(b"<f8", (0,), bytes(60_000)), REFUSED),
    "a scalar that is missing": (raw_array(b"<f8", (2**40,), kind=6), REFUSED),
    "a text that is a number": (extension(8, [10**9]), REFUSED),
    "a text that is a list": (extension(8, [[0] * 60_000]), REFUSED),
    "something unsent of one part": (extension(9, [10**9]), REFUSED),
    "something unsent of many parts": (extension(9, [""] * 60_000), REFUSED),
    "a graph of many parts": (extension(3, [0] * 60_000), REFUSED),
    "a dict of one key": (extension(2, [[1, 2]] * 20_000), READ),
    "objects in a large shape": (extension(7, [[2**31, 2**31, 0], []]), REFUSED),
    "no objects in a large shape": (extension(7, [[2**62], []]), REFUSED),
    "an integer of many digits": (msgpack.encode(msgpack.Ext(4, b"9" * 60_000)), READ),
    "a list that is overrides": (b"\xdd\x7f\xff\xff\xff", REFUSED),
    "a dict that is overrides": (b"\xdf\x7f\xff\xff\xff", REFUSED),
    "bytes that are overrides": (b"\xc6\x7f\xff\xff\xff", REFUSED),
    "an extension that is overrides": (b"\xc9\x7f\xff\xff\xff\x05", REFUSED),
    "a tuple that is overrides": (msgpack.encode(msgpack.Ext(1, b"\xdd\x7f\xff\xff\xff")), REFUSED),
    "lists a little too deep": (b"\x91" * 150 + b"\x01", REFUSED),
    "lists of lists": (b"\x91" * 60_000 + b"\x01", REFUSED),
    "tuples of tuples": (deep_tuples(), REFUSED),
    "lists of nothing": (msgpack.encode([[]] * 20_000), READ),
    "tuples of nothing": (msgpack.encode([msgpack.Ext(1, b"\x90")] * 14_000), READ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_small_input_needs_little_memory(bomb):
    data, is_read = BOMBS[bomb]
    assert len(data) <= 1 << 16
    outcome = nullcontext() if is_read else pytest.raises(ProtocolError)
    start_time = time.monotonic()
    with outcome:
        unpack_values(data)
    assert time.monotonic() - start_time < 3.0
    assert peak_of(lambda: unpack_values(data)) < MAX_MEMORY
