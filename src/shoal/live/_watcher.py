"""Gathers what there is to tell of a vector, and tells it."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterable
from typing import Any, Literal

from shoal._native import Autoreset, Meter
from shoal.live._event_log import EventLog
from shoal.live._frames import FrameCapture, FrameStore
from shoal.live._metrics import MetricsHistory
from shoal.live._worker_load import WorkerLoads, worker_as_dict
from shoal.pools import Pool
from shoal.pools._base import WorkerState

__all__ = ["DEFAULT_REFRESH", "Watcher"]

_LOOK_EVERY = 0.05
"""Seconds between two looks of the thread that steps."""

DEFAULT_REFRESH = 1.0
"""Seconds between two states, unless it is told otherwise: each takes some of the interpreter."""

_STALE_AFTER = 0.4
"""For this part of a refresh a state is told to everybody who asks."""


class Watcher:
    """What is known of a vector: kept by the thread that steps it, told to any other.

    Args:
        title: What it is called.
        kind: Whether it is just a vector, or one that something is trained on.
        refresh: Seconds between two states at the least.
    """

    def __init__(
        self,
        title: str,
        kind: Literal["vector", "training"] = "vector",
        refresh: float = DEFAULT_REFRESH,
    ) -> None:
        if not refresh > 0:
            raise ValueError(f"refresh must be a positive number of seconds, got {refresh}")
        self.refresh = refresh
        self.id = secrets.token_hex(4)
        self.title = title
        self.kind = kind
        self.plan = ""
        self.event_log = EventLog()
        self.frames = FrameStore(0)
        self.training: dict[str, Any] | None = None
        self.wins: dict[str, Any] | None = None
        self.page_seconds = 0.0
        """What telling has taken of the interpreter so far, in other threads."""
        self._started = time.time()
        self._began = time.perf_counter()
        self._ended: str | None = None
        self._spent = self._tell_at = 0.0
        self._num_envs = 0
        self._counts: MetricsHistory | None = None
        self._meter: Meter | None = None
        self._capture: FrameCapture | None = None
        self._workers: list[WorkerState] = []
        self._thread = threading.get_native_id()
        self._loads = WorkerLoads()
        self._news = threading.Condition()
        self._number = 0
        self._state: tuple[float, int, dict[str, Any]] | None = None

    def attach(self, pool: Pool, plan: str, picture_share: float) -> Meter:
        """Begin to watch a pool, whose batches are from now on counted by the meter returned."""
        self.plan = plan
        self._num_envs = pool.num_envs
        mode = getattr(Autoreset, pool.autoreset_mode.name)
        self._meter = Meter(pool.num_envs, mode, _LOOK_EVERY)
        self._counts = MetricsHistory(self._meter)
        self.frames = FrameStore(pool.num_envs)
        self._capture = FrameCapture(pool, self.frames, picture_share)
        self._workers = pool.worker_states()
        self._began = time.perf_counter()
        self._tell_at = self._began + self.refresh
        self.event_log.add("start", plan or f"{pool.num_envs} slots")
        self.tell()
        return self._meter

    def look(self, pool: Pool, observations: Any) -> None:
        """Look around between two batches. Only the thread that steps may do this.

        Args:
            pool: That is watched.
            observations: The newest batch if it is of all slots, else None.
        """
        began = time.perf_counter()
        self._thread = threading.get_native_id()
        if observations is not None and not pool.in_flight:
            self._photograph(observations)
        if began >= self._tell_at:
            self._tell_at = began + self.refresh
            self._note_workers(pool.worker_states())
            assert self._counts is not None, "a pool was attached"
            self._counts.note()
            self.tell()
        self._spent += time.perf_counter() - began

    def crashed(self, slots: Iterable[int]) -> None:
        """Slots have lost their environments, and come back with new ones."""
        for slot in slots:
            self.event_log.add("crash", f"slot {slot} has lost its environment, and begins anew")

    def failed(self, error: BaseException) -> None:
        """A step, or a reset, has raised."""
        self.event_log.add("error", f"{type(error).__name__}: {error}".strip(": "))
        self.tell()

    def end(self, how: str) -> None:
        """Nothing will be stepped any more. Only the first reason counts."""
        if self._ended is not None:
            return
        if self._counts is not None:
            self._counts.note()
        self._ended = how
        self.event_log.add("end", how)
        self.tell()

    def tell(self) -> None:
        """Wake those who wait for news."""
        with self._news:
            self._number += 1
            self._news.notify_all()

    def wait(self, number: int, timeout: float) -> int:
        """Wait until there is something newer than this, or the time is over."""
        with self._news:
            self._news.wait_for(lambda: self._number > number, timeout)
            return self._number

    def state(self, after: int = 0) -> dict[str, Any]:
        """All there is to tell, as plain data, with the log from after this entry on."""
        entries = [entry._asdict() for entry in self.event_log.after(after)]
        return {**self._common_state(), "log": entries}

    def _common_state(self) -> dict[str, Any]:
        with self._news:
            now = time.time()
            known = self._state
            if known and known[1] == self._number and now - known[0] < self.refresh * _STALE_AFTER:
                return known[2]
            state = self._made_state(now)
            self._state = now, self._number, state
            return state

    def _made_state(self, now: float) -> dict[str, Any]:
        loads = self._loads.of(self._workers, self._thread)
        workers = [
            worker_as_dict(worker, load) for worker, load in zip(self._workers, loads, strict=True)
        ]
        counted = _NOTHING_COUNTED if self._counts is None else self._counts.told()
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "started": self._started,
            "now": now,
            "ended": self._ended,
            "num_envs": self._num_envs,
            "plan": self.plan,
            **counted,
            "workers": workers,
            "wins": self.wins,
            "training": self.training,
            "pictures": self.frames.told(),
            "cost": self._cost(),
        }

    def _cost(self) -> float | None:
        if self._meter is None or not self._meter.batches:
            return None
        spent = self._spent + self._meter.spent + self.page_seconds
        return spent / max(time.perf_counter() - self._began, 1e-9)

    def _photograph(self, observations: Any) -> None:
        assert self._capture is not None
        assert self._meter is not None, "a pool was attached"
        try:
            self._capture.look(observations, self._meter.latest)
        except Exception as error:  # whatever the environment raises: its steps go on
            self.failed(error)

    def _note_workers(self, states: list[WorkerState]) -> None:
        before = {state.name: state.restarts for state in self._workers}
        for state in states:
            times = state.restarts - before.get(state.name, state.restarts)
            if times > 0:
                where = worker_as_dict(state, None)["where"]
                self.event_log.add("restart", f"{state.name} was lost, and is now {where}")
        self._workers = states


_NOTHING_COUNTED: dict[str, Any] = {
    "steps": 0,
    "batches": 0,
    "episodes": 0,
    "rate": {"now": None, "history": []},
    "step_times": {
        "edges": [],
        "counts": [],
        "median": None,
        "p90": None,
        "p99": None,
        "longest": None,
    },
    "returns": {"mean": None, "length": None, "history": []},
}
