"""The CPU load of workers, as measured by the operating system."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.pools._base import WorkerState

__all__ = ["WorkerLoads", "worker_as_dict"]

_TICKS = os.sysconf("SC_CLK_TCK")


class WorkerLoads:
    """The load of each worker since the previous measurement, as a share of a core."""

    def __init__(self) -> None:
        self._before: dict[Path, tuple[float, float]] = {}

    def measure(self, states: Sequence[WorkerState], caller: int) -> list[float | None]:
        """Return the loads of these workers; None where it is unknown.

        Args:
            states: The workers.
            caller: The native id of the stepping thread.
        """
        now, current, loads = time.monotonic(), {}, []
        for state in states:
            path = _stat_file(state, caller)
            seconds = None if path is None else _cpu_seconds(path)
            load = None
            if path is not None and seconds is not None:
                current[path] = (now, seconds)
                if path in self._before:
                    then, used = self._before[path]
                    load = max(0.0, (seconds - used) / max(now - then, 1 / _TICKS))
            loads.append(load)
        self._before = current
        return loads


def worker_as_dict(state: WorkerState, load: float | None) -> dict[str, Any]:
    """Return plain data about a worker.

    >>> worker_as_dict(WorkerState("worker 0", range(4), process=4711), 0.5)["location"]
    'process 4711'
    """
    if state.process is not None:
        location = f"process {state.process}"
    elif state.place:
        location = state.place
    else:
        location = "this process"
    return {
        "name": state.name,
        "slots": [state.slots.start, state.slots.stop - 1],
        "location": location,
        "load": load,
        "restarts": state.restarts,
    }


def _stat_file(state: WorkerState, caller: int) -> Path | None:
    if state.place:
        return None  # on another machine
    if state.process is not None:
        return Path(f"/proc/{state.process}/stat")
    thread = caller if state.thread is None else state.thread
    return Path(f"/proc/self/task/{thread}/stat")


def _cpu_seconds(path: Path) -> float | None:
    """Return the CPU time of a process or thread; None if it has ended or is not readable."""
    try:
        text = path.read_text()
    except OSError:
        return None
    # The second field is a name in parentheses, which may contain any character.
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
