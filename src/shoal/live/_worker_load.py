"""How busy workers are, as the system tells it."""

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
    """The share of a core that each worker has taken since it was asked before."""

    def __init__(self) -> None:
        self._before: dict[Path, tuple[float, float]] = {}

    def of(self, states: Sequence[WorkerState], caller: int) -> list[float | None]:
        """The loads of these workers; None where nothing is known, or not yet.

        Args:
            states: Who they are.
            caller: The thread that steps the vector, as the system knows it.
        """
        now, seen, loads = time.monotonic(), {}, []
        for state in states:
            place = _stat_file(state, caller)
            seconds = None if place is None else _processor_seconds(place)
            load = None
            if place is not None and seconds is not None:
                seen[place] = (now, seconds)
                if place in self._before:
                    then, used = self._before[place]
                    load = max(0.0, (seconds - used) / max(now - then, 1 / _TICKS))
            loads.append(load)
        self._before = seen
        return loads


def worker_as_dict(state: WorkerState, load: float | None) -> dict[str, Any]:
    """Plain data about a worker.

    >>> worker_as_dict(WorkerState("worker 0", range(4), process=4711), 0.5)["where"]
    'process 4711'
    """
    if state.process is not None:
        where = f"process {state.process}"
    elif state.place:
        where = state.place
    else:
        where = "this process"
    return {
        "name": state.name,
        "slots": [state.slots.start, state.slots.stop - 1],
        "where": where,
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


def _processor_seconds(place: Path) -> float | None:
    """What a process or a thread has taken; None where it has ended, or nobody tells."""
    try:
        text = place.read_text()
    except OSError:
        return None
    # The second field is a name in brackets, which may hold anything.
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
