"""Tianshou's collector on Shoal's vectors, next to the same collector on Tianshou's own."""

from __future__ import annotations

from pathlib import Path

from benchmarks.judging import times
from benchmarks.required import measure_required
from shoal._bench.runner import Settings

__all__ = ["REQUIRED", "measure_tianshou"]

_RIVALS = ("tianshou-dummy", "tianshou-subproc", "tianshou-shmem")

_BOUNDS = {"shoal-tianshou": 1.0, "shoal-tianshou-python": 0.9}

REQUIRED = tuple(
    times(subject, rival, "cartpole", num_envs, at_least=at_least)
    for num_envs in (8, 64)
    for subject, at_least in _BOUNDS.items()
    for rival in _RIVALS
)
"""Nobody collects more slowly for having changed the vector.

Most of the time is the collector's own, so of the same environments no more can be required than
that noise allows.
"""

_LEGEND = (
    "Transitions that a collector has put into its buffer; its policy tosses a coin. "
    "shoal-tianshou is the kernel, shoal-tianshou-python the environment that the others step. "
    "tianshou-subproc and tianshou-shmem have a process for each environment."
)


def measure_tianshou(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``tianshou`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    return measure_required("tianshou", REQUIRED, _LEGEND, settings, output)
