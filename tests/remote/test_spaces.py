"""Encoding of spaces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ProtocolError
from shoal.remote._space_codec import decode_space, encode_space
from shoal.remote._value_codec import pack_values, unpack_values
from tests.remote.mutations import FUZZ, MAX_MEMORY, peak_of
from tests.strategies import SPACES, travels


@FUZZ
@given(space=SPACES, seed=st.integers(0, 99))
def test_spaces_round_trip(space, seed):
    if not travels(space):
        with pytest.raises(TypeError, match="WordSpace cannot be described"):
            encode_space(space)
        return
    again = decode_space(unpack_values(pack_values(encode_space(space))))
    assert again == space
    assert repr(again).replace("NamedBox", "Box") == repr(space).replace("NamedBox", "Box")
    space.seed(seed)
    again.seed(seed)
    assert space.sample() in again
    assert again.sample() in space


# Invalid descriptions

OTHER_DTYPES = ["|O", "<M8[s]", "|V8", ">i4", "i4", "object", "", 3, None, ["<i4"], "<U4"]
DESCRIPTIONS = {
    "Box": {"shape": [2], "low": 0, "high": 1},
    "Discrete": {"n": 3, "start": 0},
    "MultiDiscrete": {"nvec": np.array([2, 3]), "start": np.array([0, 0])},
}


@pytest.mark.parametrize("space", DESCRIPTIONS)
def test_description_has_a_supported_dtype(space):
    description = {"space": space, **DESCRIPTIONS[space]}
    assert decode_space({**description, "dtype": "<i4"}).dtype == np.int32
    for dtype in OTHER_DTYPES:
        with pytest.raises(ProtocolError):
            decode_space({**description, "dtype": dtype})
    with pytest.raises(ProtocolError):
        decode_space(description)


@pytest.mark.parametrize(
    "description",
    [
        None,
        3,
        [],
        {},
        {"space": "Sequence"},
        {"space": "eval", "n": 3},
        {"space": ["Box"]},
        {"space": "Tuple", "parts": [3]},
        {"space": "Dict", "parts": [[["unhashable"], {"space": "Discrete"}]]},
        {"space": "Box", "shape": [2**20, 2**20], "low": 0, "high": 1, "dtype": "<f4"},
        {"space": "Box", "shape": [-1], "low": 0, "high": 1, "dtype": "<f4"},
        {"space": "Text", "min": 5, "max": 1, "characters": "ab"},
    ],
    ids=repr,
)
def test_invalid_descriptions_are_rejected_in_little_memory(description):
    with pytest.raises(ProtocolError):
        decode_space(description)
    assert peak_of(lambda: decode_space(description)) < MAX_MEMORY
