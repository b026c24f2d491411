"""Conversion of nested arrays to PyTorch tensors on any device, and back.

This module requires PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["Loader", "PinnedLoader", "tensor_loader", "to_arrays"]

Loader = Callable[[Any], Any]
"""Converts all numeric arrays in dicts and tuples to tensors on a device; keeps other values."""

_NUMERIC_KINDS = "biufc"


def tensor_loader(device: torch.device | str | int | None = None) -> Loader:
    """Return a function that converts arrays to tensors on a device; None for the CPU.

    On the CPU, tensors share the memory of the arrays. To a CUDA device, arrays are copied through
    pinned memory; see :class:`PinnedLoader`.

    >>> array = np.zeros(2)
    >>> tensors = tensor_loader()({"position": array, "name": "unchanged"})
    >>> array[0] = 1.0
    >>> tensors
    {'position': tensor([1., 0.], dtype=torch.float64), 'name': 'unchanged'}
    """
    target = torch.device("cpu" if device is None else device)
    if target.type == "cpu":
        return lambda batch: _map_arrays(batch, _share_memory)
    if target.type == "cuda":
        return PinnedLoader(target)
    return lambda batch: _map_arrays(batch, lambda array: _share_memory(array).to(target))


def to_arrays(tensors: Any) -> Any:
    """Convert all tensors in dicts, lists and tuples to arrays; keep other values.

    >>> to_arrays({"push": torch.tensor([0.5]), "moves": (1, torch.tensor([2]))})
    {'push': array([0.5], dtype=float32), 'moves': (1, array([2]))}
    """
    if isinstance(tensors, torch.Tensor):
        return tensors.numpy(force=True)
    if isinstance(tensors, dict):
        return {key: to_arrays(part) for key, part in tensors.items()}
    if isinstance(tensors, list | tuple):
        return type(tensors)(map(to_arrays, tensors))
    return tensors


class PinnedLoader:
    """Converts arrays to tensors on a CUDA device through pinned memory.

    The copy to the device is queued on the current stream without waiting for it, and the arrays
    can be overwritten at once. There are two pinned buffers, so a batch is loaded while the
    previous one is being copied; the batch after that waits for the first copy.

    Args:
        device: The device of the tensors.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffers = cycle((_PinnedBuffer(device), _PinnedBuffer(device)))

    def __call__(self, batch: Any) -> Any:
        """Convert all numeric arrays of a batch to tensors."""
        buffer = next(self._buffers)
        buffer.acquire()
        try:
            return _map_arrays(batch, buffer.load)
        finally:
            buffer.release()


class _PinnedBuffer:
    """Pinned memory for the arrays of one batch, in the order in which they are loaded."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._tensors: list[torch.Tensor] = []
        self._next = 0
        self._copied: Any = None  # a torch.cuda.Event

    def acquire(self) -> None:
        """Wait until the previous batch has been copied to the device."""
        if self._copied is not None:
            self._copied.synchronize()
        self._next = 0

    def load(self, array: npt.NDArray[Any]) -> torch.Tensor:
        source = _share_memory(array)
        index, self._next = self._next, self._next + 1
        if index == len(self._tensors):
            self._tensors.append(_pinned_like(source))
        pinned = self._tensors[index]
        if pinned.shape != source.shape or pinned.dtype != source.dtype:
            pinned = self._tensors[index] = _pinned_like(source)
        pinned.copy_(source)
        return pinned.to(self._device, non_blocking=True, copy=True)

    def release(self) -> None:
        """Record the end of the queued copies."""
        self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._copied.record(torch.cuda.current_stream(self._device))


def _pinned_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)


def _share_memory(array: npt.NDArray[Any]) -> torch.Tensor:
    # PyTorch supports neither read-only memory nor negative strides.
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)


def _map_arrays(batch: Any, convert: Callable[[npt.NDArray[Any]], torch.Tensor]) -> Any:
    if isinstance(batch, np.ndarray):
        return convert(batch) if batch.dtype.kind in _NUMERIC_KINDS else batch
    if isinstance(batch, dict):
        return {key: _map_arrays(part, convert) for key, part in batch.items()}
    if isinstance(batch, tuple):
        parts = [_map_arrays(part, convert) for part in batch]
        return batch._make(parts) if hasattr(batch, "_make") else tuple(parts)
    return batch
