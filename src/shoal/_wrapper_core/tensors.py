"""Arrays as tensors of PyTorch on any device, and tensors as arrays, whatever they are nested in.

This module needs PyTorch: it is imported where that is known to be there.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["Loader", "PinnedLoader", "arrays_of", "tensor_loader"]

Loader = Callable[[Any], Any]
"""Makes tensors on one device of all numeric arrays in dicts and tuples, and leaves the rest."""

_NUMERIC_KINDS = "biufc"


def tensor_loader(device: torch.device | str | int | None = None) -> Loader:
    """What makes tensors of arrays, on this device.

    On the CPU, which None stands for, tensors share the memory of the arrays. To a CUDA device
    arrays travel through pinned memory; see :class:`PinnedLoader`.

    >>> array = np.zeros(2)
    >>> tensors = tensor_loader()({"place": array, "word": "as it is"})
    >>> array[0] = 1.0
    >>> tensors
    {'place': tensor([1., 0.], dtype=torch.float64), 'word': 'as it is'}
    """
    target = torch.device("cpu" if device is None else device)
    if target.type == "cpu":
        return lambda batch: _mapped(batch, _shared)
    if target.type == "cuda":
        return PinnedLoader(target)
    return lambda batch: _mapped(batch, lambda array: _shared(array).to(target))


def arrays_of(tensors: Any) -> Any:
    """The same with an array for each tensor, wherever that is; what is no tensor stays as it is.

    >>> arrays_of({"push": torch.tensor([0.5]), "moves": (1, torch.tensor([2]))})
    {'push': array([0.5], dtype=float32), 'moves': (1, array([2]))}
    """
    if isinstance(tensors, torch.Tensor):
        return tensors.numpy(force=True)
    if isinstance(tensors, dict):
        return {key: arrays_of(part) for key, part in tensors.items()}
    if isinstance(tensors, list | tuple):
        return type(tensors)(map(arrays_of, tensors))
    return tensors


class PinnedLoader:
    """Makes tensors on a CUDA device, of arrays that are copied into pinned memory first.

    The copy to the device is queued on the current stream, and not waited for; the arrays may be
    written to again at once. There is pinned memory for two batches, so that the next one is taken
    in while this one travels; only the one after that waits for it.

    Args:
        device: Where the tensors are to be.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._shelves = cycle((_Shelf(device), _Shelf(device)))

    def __call__(self, batch: Any) -> Any:
        """The same with a tensor for each numeric array."""
        shelf = next(self._shelves)
        shelf.begin()
        try:
            return _mapped(batch, shelf.load)
        finally:
            shelf.end()


class _Shelf:
    """Pinned memory for the arrays of one batch, each of which has its place by its order."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffers: list[torch.Tensor] = []
        self._place = 0
        self._sent: Any = None  # a torch.cuda.Event

    def begin(self) -> None:
        """Wait until what lies here has arrived."""
        if self._sent is not None:
            self._sent.synchronize()
        self._place = 0

    def load(self, array: npt.NDArray[Any]) -> torch.Tensor:
        source = _shared(array)
        place, self._place = self._place, self._place + 1
        if place == len(self._buffers):
            self._buffers.append(_pinned_like(source))
        buffer = self._buffers[place]
        if buffer.shape != source.shape or buffer.dtype != source.dtype:
            buffer = self._buffers[place] = _pinned_like(source)
        buffer.copy_(source)
        return buffer.to(self._device, non_blocking=True, copy=True)

    def end(self) -> None:
        """Take down that all of it is on its way."""
        self._sent = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._sent.record(torch.cuda.current_stream(self._device))


def _pinned_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)


def _shared(array: npt.NDArray[Any]) -> torch.Tensor:
    # PyTorch knows neither memory that must not be written to, nor steps backwards in it.
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)


def _mapped(batch: Any, convert: Callable[[npt.NDArray[Any]], torch.Tensor]) -> Any:
    if isinstance(batch, np.ndarray):
        return convert(batch) if batch.dtype.kind in _NUMERIC_KINDS else batch
    if isinstance(batch, dict):
        return {key: _mapped(part, convert) for key, part in batch.items()}
    if isinstance(batch, tuple):
        parts = [_mapped(part, convert) for part in batch]
        return batch._make(parts) if hasattr(batch, "_make") else tuple(parts)
    return batch
