"""How much memory a worker process takes."""

from __future__ import annotations

from pathlib import Path

import shoal
from benchmarks.workloads import WORKLOADS
from shoal._bench.contenders.base import open_lockstep

__all__ = ["measure_worker_memory"]

_WORKLOAD = WORKLOADS["noop"]
_STEP_SECONDS = 0.05


def measure_worker_memory(fewer: int = 2, more: int = 6) -> float:
    """Take the megabytes by which each additional worker makes a vector larger.

    Both vectors have the same number of environments, which do nothing. Memory that processes
    share is divided among them.
    """
    num_envs = 2 * more
    grown = _workers_megabytes(more, num_envs) - _workers_megabytes(fewer, num_envs)
    return grown / (more - fewer)


def _workers_megabytes(workers: int, num_envs: int) -> float:
    others = _children()
    envs = shoal.make(
        _WORKLOAD.make, num_envs, backend="process", workers=workers, caller_works=False
    )
    try:
        open_lockstep(envs, _WORKLOAD).step_many(_STEP_SECONDS)
        return sum(_megabytes(pid) for pid in _children() - others)
    finally:
        envs.close()


def _children() -> set[int]:
    """List the processes that this one has started, by whichever thread."""
    lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    return {int(pid) for text in lists for pid in text.split()}


def _megabytes(pid: int) -> float:
    """Read a process's proportional share of the memory that it uses."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    kibibytes = next(line.split()[1] for line in lines if line.startswith("Pss:"))
    return int(kibibytes) * 1024 / 1e6
