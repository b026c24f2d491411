"""Where a run computes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import torch

from shoal.train._config.agent_settings import AgentSettings

__all__ = ["choose_device", "cpu_threads", "fast_matmul", "useful_threads"]

_WORTH_SHARING = 5_000_000
"""Multiplications of one pass of a batch through the hidden layers, below which a second thread
gains a quarter at best; and where another process needs its core, each of the many small operations
of an update waits for it, so that updates are several times as slow."""


@contextmanager
def cpu_threads(count: int | None) -> Iterator[None]:
    """Let torch use so many threads for an operation on the CPU; None for what it would use."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def useful_threads(settings: AgentSettings, num_envs: int) -> int:
    """How many threads of the CPU an agent's updates are worth, of those that torch would use.

    >>> from shoal.train._config.agent_settings import DDDQNSettings
    >>> useful_threads(DDDQNSettings(hidden_dim=[64, 64]), num_envs=8)
    1
    """
    widths = settings.hidden_dim
    # The layers before and after these have about as many inputs and outputs as the least of them.
    weights = sum(one * other for one, other in pairwise([min(widths), *widths]))
    work = settings.rows_of_update(num_envs) * weights
    return 1 if work < _WORTH_SHARING else torch.get_num_threads()


@contextmanager
def fast_matmul(device: str) -> Iterator[None]:
    """Let a GPU multiply matrices with the precision that its fast units have (TF32)."""
    before = torch.get_float32_matmul_precision()
    if torch.device(device).type == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def choose_device(wanted: str | int | torch.device | None) -> str:
    """A device that is there: the one that is wanted, or the nearest to it, with a warning.

    A config or a script that was written for a machine with GPUs runs on one without.

    Args:
        wanted: Such as ``"cuda:1"``, a number for that one, ``"cpu"``; None for a GPU if there is
            one.

    >>> choose_device("cpu")
    'cpu'
    """
    count = torch.cuda.device_count()
    if wanted is None:
        return "cuda" if count else "cpu"
    name = f"cuda:{wanted}" if isinstance(wanted, int) else str(wanted)
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu, cuda, cuda:1 and the like, got {name!r}")
    if device.type != "cuda" or (device.index or 0) < count:
        return name
    found = "cuda" if count else "cpu"
    there = f"{count} GPUs" if count else "no GPU that torch can use"
    warnings.warn(f"there is no {name}, as there is {there}: training on {found}", stacklevel=3)
    return found
