"""Spaces as plain values, for the client of a server."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from shoal.errors import ProtocolError
from shoal.remote._value_codec import dtype_code, dtype_of

__all__ = ["decode_space", "encode_space"]

Description = dict[str, Any]

_MAX_NUMBERS = 1 << 24
"""Largest number of elements in one observation or action."""


@singledispatch
def encode_space(space: Space[Any]) -> Description:
    """Convert a space to plain values.

    >>> encode_space(spaces.Discrete(3, start=-1))
    {'space': 'Discrete', 'n': 3, 'start': -1, 'dtype': '<i8'}

    Raises:
        TypeError: The space is not one of Gymnasium's.
    """
    raise TypeError(
        f"{type(space).__name__} cannot be described to a client: only Gymnasium's own spaces can"
    )


@encode_space.register
def _box(space: spaces.Box) -> Description:
    return {
        "space": "Box",
        "shape": list(space.shape),
        "low": _compact(space.low),
        "high": _compact(space.high),
        "dtype": dtype_code(np.dtype(space.dtype)),
    }


def _compact(bounds: Any) -> Any:
    """Replace bounds that are all equal by a scalar."""
    is_same = bounds.size > 0 and bool((bounds == bounds.flat[0]).all())
    return bounds.reshape(-1)[0] if is_same else bounds


@encode_space.register
def _discrete(space: spaces.Discrete) -> Description:
    dtype = dtype_code(np.dtype(space.dtype))
    return {"space": "Discrete", "n": int(space.n), "start": int(space.start), "dtype": dtype}


@encode_space.register
def _multi_discrete(space: spaces.MultiDiscrete) -> Description:
    dtype = dtype_code(np.dtype(space.dtype))
    return {"space": "MultiDiscrete", "nvec": space.nvec, "start": space.start, "dtype": dtype}


@encode_space.register
def _multi_binary(space: spaces.MultiBinary) -> Description:
    return {"space": "MultiBinary", "n": [int(n) for n in space.shape]}


@encode_space.register
def _dict(space: spaces.Dict) -> Description:
    parts = [(key, encode_space(part)) for key, part in space.spaces.items()]
    return {"space": "Dict", "parts": parts}


@encode_space.register
def _tuple(space: spaces.Tuple) -> Description:  # type: ignore[type-arg]
    return {"space": "Tuple", "parts": [encode_space(part) for part in space.spaces]}


@encode_space.register
def _text(space: spaces.Text) -> Description:
    return {
        "space": "Text",
        "min": space.min_length,
        "max": space.max_length,
        "characters": "".join(space.character_list),
    }


@encode_space.register
def _sequence(space: spaces.Sequence) -> Description:
    part = encode_space(space.feature_space)
    return {"space": "Sequence", "part": part, "stack": bool(space.stack)}


@encode_space.register
def _graph(space: spaces.Graph) -> Description:
    edge = None if space.edge_space is None else encode_space(space.edge_space)
    return {"space": "Graph", "node": encode_space(space.node_space), "edge": edge}


@encode_space.register
def _one_of(space: spaces.OneOf) -> Description:  # type: ignore[type-arg]
    return {"space": "OneOf", "parts": [encode_space(part) for part in space.spaces]}


def decode_space(description: Any) -> Space[Any]:
    """Convert plain values to a space.

    Raises:
        ProtocolError: The values do not describe a space, or one that is too large.
    """
    try:
        return _Decoder().decode(description)
    except ProtocolError:
        raise
    except Exception as error:
        raise ProtocolError(f"invalid description of a space: {error!r}") from error


class _Decoder:
    """Decodes a space; its parts share a limit, because few bytes can describe a large space."""

    def __init__(self) -> None:
        self._remaining = _MAX_NUMBERS

    def decode(self, description: Description) -> Space[Any]:
        return _DECODERS[description["space"]](self, description)

    def _parts(self, description: Description) -> list[Space[Any]]:
        return [self.decode(part) for part in description["parts"]]

    def _count(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape after counting its elements towards the limit."""
        self._remaining -= math.prod(shape)
        if self._remaining < 0 or min(shape, default=0) < 0:
            raise ProtocolError(f"a space with a part of shape {shape} is too large")
        return shape

    def box(self, description: Description) -> Space[Any]:
        dtype: Any = dtype_of(description["dtype"]).type
        shape = self._count(tuple(description["shape"]))
        low, high = (
            np.broadcast_to(description[name], shape).astype(dtype) for name in ("low", "high")
        )
        return spaces.Box(low, high, shape, dtype)

    def discrete(self, description: Description) -> Space[Any]:
        dtype: Any = dtype_of(description["dtype"]).type
        return spaces.Discrete(description["n"], start=description["start"], dtype=dtype)

    def multi_discrete(self, description: Description) -> Space[Any]:
        dtype: Any = dtype_of(description["dtype"]).type
        self._count(description["nvec"].shape)
        return spaces.MultiDiscrete(description["nvec"], dtype=dtype, start=description["start"])

    def multi_binary(self, description: Description) -> Space[Any]:
        shape = self._count(tuple(description["n"]))
        return spaces.MultiBinary(shape[0] if len(shape) == 1 else list(shape))

    def dict_space(self, description: Description) -> Space[Any]:
        space = spaces.Dict()
        for key, part in description["parts"]:
            space.spaces[key] = self.decode(part)  # the constructor would sort the keys
        return space

    def tuple_space(self, description: Description) -> Space[Any]:
        return spaces.Tuple(self._parts(description))

    def text(self, description: Description) -> Space[Any]:
        return spaces.Text(
            description["max"], min_length=description["min"], charset=description["characters"]
        )

    def sequence(self, description: Description) -> Space[Any]:
        return spaces.Sequence(self.decode(description["part"]), stack=description["stack"])

    def graph(self, description: Description) -> Space[Any]:
        node: Any = self.decode(description["node"])
        edge: Any = None if description["edge"] is None else self.decode(description["edge"])
        return spaces.Graph(node, edge)

    def one_of(self, description: Description) -> Space[Any]:
        return spaces.OneOf(self._parts(description))


_DECODERS: dict[str, Callable[[_Decoder, Description], Space[Any]]] = {
    "Box": _Decoder.box,
    "Discrete": _Decoder.discrete,
    "MultiDiscrete": _Decoder.multi_discrete,
    "MultiBinary": _Decoder.multi_binary,
    "Dict": _Decoder.dict_space,
    "Tuple": _Decoder.tuple_space,
    "Text": _Decoder.text,
    "Sequence": _Decoder.sequence,
    "Graph": _Decoder.graph,
    "OneOf": _Decoder.one_of,
}
