"""Spaces as data: how a client learns of the spaces of a server's environments."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from shoal.errors import ProtocolError
from shoal.remote._value_codec import dtype_code, dtype_of

__all__ = ["described_space", "space_of"]

Description = dict[str, Any]

_MOST_NUMBERS = 1 << 24
"""Numbers of one observation or action."""


@singledispatch
def described_space(space: Space[Any]) -> Description:
    """A space as plain values.

    >>> described_space(spaces.Discrete(3, start=-1))
    {'space': 'Discrete', 'n': 3, 'start': -1, 'dtype': '<i8'}

    Raises:
        TypeError: It is of a class that Gymnasium does not have.
    """
    raise TypeError(
        f"{type(space).__name__} cannot be described to a client: only the spaces of Gymnasium can"
    )


@described_space.register
def _box(space: spaces.Box) -> Description:
    return {
        "space": "Box",
        "shape": list(space.shape),
        "low": _short(space.low),
        "high": _short(space.high),
        "dtype": dtype_code(np.dtype(space.dtype)),
    }


def _short(bounds: Any) -> Any:
    """Bounds, or one of them where they are all the same."""
    is_same = bounds.size > 0 and bool((bounds == bounds.flat[0]).all())
    return bounds.reshape(-1)[0] if is_same else bounds


@described_space.register
def _discrete(space: spaces.Discrete) -> Description:
    dtype = dtype_code(np.dtype(space.dtype))
    return {"space": "Discrete", "n": int(space.n), "start": int(space.start), "dtype": dtype}


@described_space.register
def _multi_discrete(space: spaces.MultiDiscrete) -> Description:
    dtype = dtype_code(np.dtype(space.dtype))
    return {"space": "MultiDiscrete", "nvec": space.nvec, "start": space.start, "dtype": dtype}


@described_space.register
def _multi_binary(space: spaces.MultiBinary) -> Description:
    return {"space": "MultiBinary", "n": [int(n) for n in space.shape]}


@described_space.register
def _dict(space: spaces.Dict) -> Description:
    parts = [(key, described_space(part)) for key, part in space.spaces.items()]
    return {"space": "Dict", "parts": parts}


@described_space.register
def _tuple(space: spaces.Tuple) -> Description:  # type: ignore[type-arg]
    return {"space": "Tuple", "parts": [described_space(part) for part in space.spaces]}


@described_space.register
def _text(space: spaces.Text) -> Description:
    return {
        "space": "Text",
        "min": space.min_length,
        "max": space.max_length,
        "characters": "".join(space.character_list),
    }


@described_space.register
def _sequence(space: spaces.Sequence) -> Description:
    part = described_space(space.feature_space)
    return {"space": "Sequence", "part": part, "stack": bool(space.stack)}


@described_space.register
def _graph(space: spaces.Graph) -> Description:
    edge = None if space.edge_space is None else described_space(space.edge_space)
    return {"space": "Graph", "node": described_space(space.node_space), "edge": edge}


@described_space.register
def _one_of(space: spaces.OneOf) -> Description:  # type: ignore[type-arg]
    return {"space": "OneOf", "parts": [described_space(part) for part in space.spaces]}


def space_of(description: Any) -> Space[Any]:
    """The space that was described.

    Raises:
        ProtocolError: It is the description of none, or of one that is too large.
    """
    try:
        return _Maker().made(description)
    except ProtocolError:
        raise
    except Exception as error:
        raise ProtocolError(f"a space could not be read: {error!r}") from error


class _Maker:
    """Makes a space and its parts, which share a limit: few bytes can describe many numbers."""

    def __init__(self) -> None:
        self._left = _MOST_NUMBERS

    def made(self, told: Description) -> Space[Any]:
        return _MAKERS[told["space"]](self, told)

    def _parts(self, told: Description) -> list[Space[Any]]:
        return [self.made(part) for part in told["parts"]]

    def _room_for(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape for which there is room."""
        self._left -= math.prod(shape)
        if self._left < 0 or min(shape, default=0) < 0:
            raise ProtocolError(f"a space with a part of shape {shape} is too large")
        return shape

    def box(self, told: Description) -> Space[Any]:
        dtype: Any = dtype_of(told["dtype"]).type
        shape = self._room_for(tuple(told["shape"]))
        low, high = (np.broadcast_to(told[name], shape).astype(dtype) for name in ("low", "high"))
        return spaces.Box(low, high, shape, dtype)

    def discrete(self, told: Description) -> Space[Any]:
        dtype: Any = dtype_of(told["dtype"]).type
        return spaces.Discrete(told["n"], start=told["start"], dtype=dtype)

    def multi_discrete(self, told: Description) -> Space[Any]:
        dtype: Any = dtype_of(told["dtype"]).type
        self._room_for(told["nvec"].shape)
        return spaces.MultiDiscrete(told["nvec"], dtype=dtype, start=told["start"])

    def multi_binary(self, told: Description) -> Space[Any]:
        shape = self._room_for(tuple(told["n"]))
        return spaces.MultiBinary(shape[0] if len(shape) == 1 else list(shape))

    def composed(self, told: Description) -> Space[Any]:
        made = spaces.Dict()
        for key, part in told["parts"]:
            made.spaces[key] = self.made(part)  # the constructor would sort them
        return made

    def row(self, told: Description) -> Space[Any]:
        return spaces.Tuple(self._parts(told))

    def text(self, told: Description) -> Space[Any]:
        return spaces.Text(told["max"], min_length=told["min"], charset=told["characters"])

    def sequence(self, told: Description) -> Space[Any]:
        return spaces.Sequence(self.made(told["part"]), stack=told["stack"])

    def graph(self, told: Description) -> Space[Any]:
        node: Any = self.made(told["node"])
        edge: Any = None if told["edge"] is None else self.made(told["edge"])
        return spaces.Graph(node, edge)

    def one_of(self, told: Description) -> Space[Any]:
        return spaces.OneOf(self._parts(told))


_MAKERS: dict[str, Callable[[_Maker, Description], Space[Any]]] = {
    "Box": _Maker.box,
    "Discrete": _Maker.discrete,
    "MultiDiscrete": _Maker.multi_discrete,
    "MultiBinary": _Maker.multi_binary,
    "Dict": _Maker.composed,
    "Tuple": _Maker.row,
    "Text": _Maker.text,
    "Sequence": _Maker.sequence,
    "Graph": _Maker.graph,
    "OneOf": _Maker.one_of,
}
