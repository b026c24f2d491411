"""Devices and CPU threads on which a run computes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import torch

from shoal.train._config.agent_settings import AgentSettings

__all__ = ["choose_device", "cpu_threads", "fast_matmul", "useful_threads"]

_MIN_PARALLEL_WORK = 5_000_000
"""Multiplications in a forward pass of a batch from which several threads are used.

Below this, a second thread gains at most 25%. If another process needs its core, each of the many
small operations of an update waits for that core, and updates become several times slower."""


@contextmanager
def cpu_threads(count: int | None) -> Iterator[None]:
    """Set the number of CPU threads of torch operations; None keeps the current number."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def useful_threads(settings: AgentSettings, num_envs: int) -> int:
    """Return the number of CPU threads to use for an agent's updates.

    >>> from shoal.train._config.agent_settings import DDDQNSettings
    >>> useful_threads(DDDQNSettings(hidden_dim=[64, 64]), num_envs=8)
    1
    """
    widths = settings.hidden_dim
    # Count the input and output layers as one layer with the smallest hidden width.
    weights = sum(inputs * outputs for inputs, outputs in pairwise([min(widths), *widths]))
    work = settings.rows_of_update(num_envs) * weights
    return 1 if work < _MIN_PARALLEL_WORK else torch.get_num_threads()


@contextmanager
def fast_matmul(device: str) -> Iterator[None]:
    """Enable TF32 matrix multiplication on a GPU."""
    before = torch.get_float32_matmul_precision()
    if torch.device(device).type == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def choose_device(requested: str | int | torch.device | None) -> str:
    """Return the name of the requested device, or of a fallback, with a warning, if it is missing.

    The fallback lets a config or script written for a machine with GPUs run on one without.

    Args:
        requested: A device such as ``"cuda:1"`` or ``"cpu"``, or the index of a GPU. None selects
            a GPU if one is available.

    Raises:
        ValueError: If ``requested`` is not a CPU or CUDA device.

    >>> choose_device("cpu")
    'cpu'
    """
    count = torch.cuda.device_count()
    if requested is None:
        return "cuda" if count else "cpu"
    name = f"cuda:{requested}" if isinstance(requested, int) else str(requested)
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu, cuda or a name such as cuda:1, got {name!r}")
    if device.type != "cuda" or (device.index or 0) < count:
        return name
    fallback = "cuda" if count else "cpu"
    available = f"only {count} GPUs" if count else "no GPU that torch can use"
    warnings.warn(
        f"there is no {name}: the machine has {available}; training on {fallback}", stacklevel=3
    )
    return fallback
