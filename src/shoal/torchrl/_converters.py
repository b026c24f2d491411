"""TorchRL specs for Gymnasium spaces, and conversion of their values.

Specs equal those of TorchRL's ``GymEnv`` where ``GymEnv`` creates a correct one. To support a new
type of space, register a function with :func:`converter_of`.
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
    """The spec of one slot, and functions that convert batches to and from it."""

    spec: Any
    encode: Callable[[Any], Any]
    """Convert tensors in the pool's format to the spec's format."""
    decode: Callable[[Any], Any]
    """Convert tensors in the spec's format to arrays for the pool."""


@singledispatch
def converter_of(space: Space[Any], path: str, is_categorical: bool) -> Converter:  # noqa: ARG001
    """Return the converter of a space.

    Args:
        space: The space.
        path: The name of the space in error messages.
        is_categorical: Whether discrete values are encoded as integers instead of one-hot.
    """
    raise TypeError(
        f"TorchRL has no spec for {path}, which is a {type(space).__name__}: remove it (for "
        "example, with shoal.vector.wrappers.FilterObservation) or convert it to arrays"
    )


@converter_of.register(spaces.Box)
def _box(space: spaces.Box, path: str, is_categorical: bool) -> Converter:  # noqa: ARG001
    dtype = _torch_dtype(space, path)
    shape = space.shape or (1,)  # TorchRL has no scalars
    is_float = np.issubdtype(space.dtype, np.floating)
    limits: Any = np.finfo(space.dtype) if is_float else None
    if np.issubdtype(space.dtype, np.integer):
        limits = np.iinfo(space.dtype)
    minimum, maximum = (limits.min, limits.max) if limits is not None else (False, True)
    if (space.low <= minimum).all() and (space.high >= maximum).all():
        spec = Unbounded(shape, dtype=dtype)
    else:
        low, high = (torch.as_tensor(bound).reshape(shape) for bound in (space.low, space.high))
        spec = Bounded(low, high, shape, dtype=dtype)
    if space.shape:
        return Converter(spec, _identity, partial(_array, space))
    return Converter(spec, _add_dimension, lambda tensor: _array(space, tensor[..., 0]))


@converter_of.register(spaces.MultiBinary)
def _multi_binary(space: spaces.MultiBinary, path: str, is_categorical: bool) -> Converter:  # noqa: ARG001
    spec = Binary(space.shape[-1], space.shape, dtype=_torch_dtype(space, path))
    return Converter(spec, _identity, partial(_array, space))


@converter_of.register(spaces.Discrete)
def _discrete(space: spaces.Discrete, path: str, is_categorical: bool) -> Converter:
    count, dtype = int(space.n), _torch_dtype(space, path)
    if is_categorical:
        return _categorical(space, space.start, Categorical(count, dtype=dtype))
    return _one_hot(space, space.start, OneHot(count, dtype=torch.long), count, path)


@converter_of.register(spaces.MultiDiscrete)
def _multi_discrete(space: spaces.MultiDiscrete, path: str, is_categorical: bool) -> Converter:
    counts, dtype = space.nvec, _torch_dtype(space, path)
    is_uniform = bool((counts == counts.flat[0]).all())
    count = int(counts.flat[0])
    if is_categorical and is_uniform:
        return _categorical(space, space.start, Categorical(count, space.shape, dtype=dtype))
    if is_categorical:
        spec = MultiCategorical(torch.as_tensor(counts), dtype=dtype)
        return _categorical(space, space.start, spec)
    if is_uniform:
        spec = OneHot(count, (*space.shape, count), dtype=torch.long)
        return _one_hot(space, space.start, spec, count, path)
    if counts.ndim == 1:
        return _multi_one_hot(space, path)
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
    def encode_parts(batch: Any) -> dict[str, Any]:
        return {key: part.encode(encode(batch, key)) for key, part in parts.items()}

    def decode_parts(tensors: TensorDictBase) -> Any:
        return decode({key: part.decode(tensors[key]) for key, part in parts.items()})

    spec = Composite({key: part.spec for key, part in parts.items()})
    return Converter(spec, encode_parts, decode_parts)


def _categorical(space: Space[Any], start: Any, spec: Any) -> Converter:
    """Return a converter that encodes discrete values as integers from 0."""
    if not np.any(start):
        return Converter(spec, _identity, partial(_array, space))
    return Converter(
        spec,
        lambda tensor: tensor - _on_device_of(tensor, start),
        lambda tensor: _array(space, tensor) + start,
    )


def _one_hot(space: Space[Any], start: Any, spec: Any, count: int, path: str) -> Converter:
    def encode(tensor: torch.Tensor) -> torch.Tensor:
        return one_hot(tensor.long() - _on_device_of(tensor, start), count)

    def decode(tensor: torch.Tensor) -> Array:
        indices = _one_hot_indices(tensor.numpy(force=True), count, path).astype(space.dtype)
        values: Array = indices + start
        return values

    return Converter(spec, encode, decode)


def _multi_one_hot(space: spaces.MultiDiscrete, path: str) -> Converter:
    counts: list[int] = space.nvec.tolist()
    ends = np.cumsum(counts)

    def encode(tensor: torch.Tensor) -> torch.Tensor:
        indices = tensor.long() - _on_device_of(tensor, space.start)
        parts = zip(indices.unbind(-1), counts, strict=True)
        return torch.cat([one_hot(part, count) for part, count in parts], -1)

    def decode(tensor: torch.Tensor) -> Array:
        hot = tensor.numpy(force=True)
        _check_last_dimension(hot, int(ends[-1]), path)
        parts = np.split(hot, ends[:-1], -1)
        indices = [
            _one_hot_indices(part, count, f"{path}[{place}]")
            for place, (part, count) in enumerate(zip(parts, counts, strict=True))
        ]
        return np.stack(indices, -1).astype(space.dtype) + space.start

    return Converter(MultiOneHot(counts, dtype=torch.long), encode, decode)


def _one_hot_indices(hot: Array, count: int, path: str) -> Array:
    """Return the indices of the ones along the last dimension."""
    _check_last_dimension(hot, count, path)
    invalid = np.count_nonzero(hot, -1) != 1
    if invalid.any():
        slot = int(np.argwhere(invalid)[0][0])
        raise InvalidActionError(f"{path} of slot {slot} is not one-hot: {hot[slot]}")
    indices: Array = hot.argmax(-1)
    return indices


def _check_last_dimension(hot: Array, count: int, path: str) -> None:
    if hot.ndim < 2 or hot.shape[-1] != count:
        raise InvalidActionError(
            f"{path} has shape {hot.shape}, expected one-hot rows of {count} choices"
        )


def _array(space: Space[Any], tensor: torch.Tensor) -> Array:
    """Convert a tensor to an array of the space's dtype, unless integers would change."""
    array: Array = tensor.numpy(force=True)
    if array.dtype == space.dtype:
        return array
    with np.errstate(invalid="ignore"):  # NaN is detected by the comparison below
        cast = array.astype(space.dtype)
    is_float = np.issubdtype(space.dtype, np.floating)
    return cast if is_float or np.array_equal(cast, array) else array


def _identity(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _add_dimension(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.unsqueeze(-1)


def _on_device_of(tensor: torch.Tensor, start: Any) -> torch.Tensor:
    return torch.as_tensor(start, device=tensor.device)


def _torch_dtype(space: Space[Any], path: str) -> torch.dtype:
    dtype: torch.dtype | None = numpy_to_torch_dtype_dict.get(space.dtype)
    if dtype is None:
        raise TypeError(f"TorchRL has no spec for {path}: its dtype is {space.dtype}")
    return dtype
