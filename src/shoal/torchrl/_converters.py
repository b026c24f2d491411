"""Spaces as specs of TorchRL, with what converts between the two.

Specs are those that TorchRL's ``GymEnv`` would make, where it makes any that fits. A new kind of
space is supported by registering a function with :func:`converter_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import Space, spaces
from tensordict import TensorDictBase
from torch.nn.functional import one_hot
from torchrl.data import (
    Binary,
    Bounded,
    Categorical,
    Composite,
    MultiCategorical,
    MultiOneHot,
    OneHot,
    Unbounded,
)
from torchrl.data.utils import numpy_to_torch_dtype_dict

from shoal.errors import InvalidActionError

__all__ = ["Converter", "converter_of"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Converter:
    """A spec for one slot, and the way to its values and back, for a batch of slots."""

    spec: Any
    encode: Callable[[Any], Any]
    """From tensors as a pool's arrays hold them, to tensors as the spec has them."""
    decode: Callable[[Any], Any]
    """From tensors as the spec has them, to arrays for the pool."""


@singledispatch
def converter_of(space: Space[Any], path: str, is_categorical: bool) -> Converter:  # noqa: ARG001
    """The converter of a space, which is called ``path`` in messages.

    ``is_categorical`` says whether choices are numbers, or one-hot.
    """
    raise TypeError(
        f"TorchRL has no spec for {path}, which is a {type(space).__name__}: leave it out, as "
        "shoal.vector.wrappers.FilterObservation does, or make arrays of a fixed shape of it"
    )


@converter_of.register(spaces.Box)
def _box(space: spaces.Box, path: str, is_categorical: bool) -> Converter:  # noqa: ARG001
    dtype = _torch_dtype(space, path)
    shape = space.shape or (1,)  # TorchRL has no scalars
    is_float = np.issubdtype(space.dtype, np.floating)
    limits: Any = np.finfo(space.dtype) if is_float else None
    if np.issubdtype(space.dtype, np.integer):
        limits = np.iinfo(space.dtype)
    lowest, highest = (limits.min, limits.max) if limits is not None else (False, True)
    if (space.low <= lowest).all() and (space.high >= highest).all():
        spec = Unbounded(shape, dtype=dtype)
    else:
        low, high = (torch.as_tensor(bound).reshape(shape) for bound in (space.low, space.high))
        spec = Bounded(low, high, shape, dtype=dtype)
    if space.shape:
        return Converter(spec, _same, partial(_array, space))
    return Converter(spec, _with_one_element, lambda tensor: _array(space, tensor[..., 0]))


@converter_of.register(spaces.MultiBinary)
def _multi_binary(space: spaces.MultiBinary, path: str, is_categorical: bool) -> Converter:  # noqa: ARG001
    spec = Binary(space.shape[-1], space.shape, dtype=_torch_dtype(space, path))
    return Converter(spec, _same, partial(_array, space))


@converter_of.register(spaces.Discrete)
def _discrete(space: spaces.Discrete, path: str, is_categorical: bool) -> Converter:
    count, dtype = int(space.n), _torch_dtype(space, path)
    if is_categorical:
        return _numbered(space, space.start, Categorical(count, dtype=dtype))
    return _one_hot(space, space.start, OneHot(count, dtype=torch.long), count, path)


@converter_of.register(spaces.MultiDiscrete)
def _multi_discrete(space: spaces.MultiDiscrete, path: str, is_categorical: bool) -> Converter:
    counts, dtype = space.nvec, _torch_dtype(space, path)
    are_alike = bool((counts == counts.flat[0]).all())
    count = int(counts.flat[0])
    if is_categorical and are_alike:
        return _numbered(space, space.start, Categorical(count, space.shape, dtype=dtype))
    if is_categorical:
        return _numbered(space, space.start, MultiCategorical(torch.as_tensor(counts), dtype=dtype))
    if are_alike:
        spec = OneHot(count, (*space.shape, count), dtype=torch.long)
        return _one_hot(space, space.start, spec, count, path)
    if counts.ndim == 1:
        return _several_one_hot(space, path)
    raise TypeError(
        f"TorchRL has no one-hot spec for {path}, {space}: pass categorical_action_encoding=True"
    )


@converter_of.register(spaces.Dict)
def _dict(space: spaces.Dict, path: str, is_categorical: bool) -> Converter:
    return _composite(
        {
            key: converter_of(part, f"{path}[{key!r}]", is_categorical)
            for key, part in space.spaces.items()
        },
        encode=lambda batch, key: batch[key],
        decode=dict,
    )


@converter_of.register(spaces.Tuple)
def _tuple(space: spaces.Tuple[Any], path: str, is_categorical: bool) -> Converter:
    return _composite(
        {
            str(place): converter_of(part, f"{path}[{place}]", is_categorical)
            for place, part in enumerate(space.spaces)
        },
        encode=lambda batch, key: batch[int(key)],
        decode=lambda parts: tuple(parts.values()),
    )


def _composite(
    parts: Mapping[str, Converter],
    encode: Callable[[Any, str], Any],
    decode: Callable[[dict[str, Any]], Any],
) -> Converter:
    def encoded(batch: Any) -> dict[str, Any]:
        return {key: part.encode(encode(batch, key)) for key, part in parts.items()}

    def decoded(tensors: TensorDictBase) -> Any:
        return decode({key: part.decode(tensors[key]) for key, part in parts.items()})

    return Converter(Composite({key: part.spec for key, part in parts.items()}), encoded, decoded)


def _numbered(space: Space[Any], start: Any, spec: Any) -> Converter:
    """Choices that are numbers from 0."""
    if not np.any(start):
        return Converter(spec, _same, partial(_array, space))
    return Converter(
        spec,
        lambda tensor: tensor - _on_device_of(tensor, start),
        lambda tensor: _array(space, tensor) + start,
    )


def _one_hot(space: Space[Any], start: Any, spec: Any, count: int, path: str) -> Converter:
    def encoded(tensor: torch.Tensor) -> torch.Tensor:
        return one_hot(tensor.long() - _on_device_of(tensor, start), count)

    def decoded(tensor: torch.Tensor) -> Array:
        places = _chosen(tensor.numpy(force=True), count, path).astype(space.dtype)
        numbers: Array = places + start
        return numbers

    return Converter(spec, encoded, decoded)


def _several_one_hot(space: spaces.MultiDiscrete, path: str) -> Converter:
    counts: list[int] = space.nvec.tolist()
    ends = np.cumsum(counts)

    def encoded(tensor: torch.Tensor) -> torch.Tensor:
        numbers = tensor.long() - _on_device_of(tensor, space.start)
        parts = zip(numbers.unbind(-1), counts, strict=True)
        return torch.cat([one_hot(number, count) for number, count in parts], -1)

    def decoded(tensor: torch.Tensor) -> Array:
        hot = tensor.numpy(force=True)
        _check_last_dimension(hot, int(ends[-1]), path)
        parts = np.split(hot, ends[:-1], -1)
        numbers = [
            _chosen(part, count, f"{path}[{place}]")
            for place, (part, count) in enumerate(zip(parts, counts, strict=True))
        ]
        return np.stack(numbers, -1).astype(space.dtype) + space.start

    return Converter(MultiOneHot(counts, dtype=torch.long), encoded, decoded)


def _chosen(hot: Array, count: int, path: str) -> Array:
    """The places of the ones, along the last dimension."""
    _check_last_dimension(hot, count, path)
    wrong = np.count_nonzero(hot, -1) != 1
    if wrong.any():
        slot = int(np.argwhere(wrong)[0][0])
        raise InvalidActionError(f"{path} of slot {slot} is not one-hot: {hot[slot]}")
    places: Array = hot.argmax(-1)
    return places


def _check_last_dimension(hot: Array, count: int, path: str) -> None:
    if hot.ndim < 2 or hot.shape[-1] != count:
        raise InvalidActionError(
            f"{path} has the shape {hot.shape}, expected one-hot rows of {count} choices"
        )


def _array(space: Space[Any], tensor: torch.Tensor) -> Array:
    """An array of the space's dtype, unless that would change what a policy has chosen."""
    array: Array = tensor.numpy(force=True)
    if array.dtype == space.dtype:
        return array
    with np.errstate(invalid="ignore"):  # what is no number is seen in the comparison
        cast = array.astype(space.dtype)
    is_float = np.issubdtype(space.dtype, np.floating)
    return cast if is_float or np.array_equal(cast, array) else array


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _with_one_element(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.unsqueeze(-1)


def _on_device_of(tensor: torch.Tensor, start: Any) -> torch.Tensor:
    return torch.as_tensor(start, device=tensor.device)


def _torch_dtype(space: Space[Any], path: str) -> torch.dtype:
    dtype: torch.dtype | None = numpy_to_torch_dtype_dict.get(space.dtype)
    if dtype is None:
        raise TypeError(f"TorchRL has no spec for {path}: its dtype is {space.dtype}")
    return dtype
