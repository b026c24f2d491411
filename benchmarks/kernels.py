"""Shoal's kernels next to EnvPool, to plain loops in C, and to themselves on one thread."""

from __future__ import annotations

from pathlib import Path

from benchmarks.judging import times
from benchmarks.required import measure_required, worth_of_threads
from benchmarks.workloads import GYMNASIUM_IDS
from shoal._bench.runner import Settings

__all__ = ["REQUIRED", "measure_kernels"]

_KERNEL, _ONE_THREAD, _FIRST_COME = "shoal-kernel", "shoal-kernel-1", "shoal-kernel-first-come"

REQUIRED = (
    *(
        times(*pair, "cartpole", num_envs, at_least=at_least)
        for num_envs, at_least in ((1024, 10.0), (65_536, 10.0), (8, 2.0), (64, 2.0))
        for pair in ((_KERNEL, "envpool"), (_FIRST_COME, "envpool-async"))
    ),
    times(_KERNEL, "envpool", "cartpole", 1, at_least=2.0),
    *(times(_KERNEL, "gymnasium-sync", "cartpole", n, at_least=1.0) for n in (1, 8, 64)),
    *(times(_ONE_THREAD, "plain-c", name, 4096, at_least=0.7) for name in GYMNASIUM_IDS),
    times("shoal-kernel-numba", "shoal-kernel-c", "swing", 4096, at_least=0.5),
)
"""What must be reached on any number of cores; what threads are worth depends on it."""

_LEGEND = (
    "Measured: the median over rounds of the ratio within a round. plain-c is a "
    "loop in C over the same physics, on one core; the first-come kernel and envpool-async get "
    "half of their environments back at a time."
)


def measure_kernels(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``kernels`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    figures = [*REQUIRED, *worth_of_threads(_KERNEL, _ONE_THREAD, "cartpole", 65_536)]
    return measure_required("kernels", figures, _LEGEND, settings, output)
