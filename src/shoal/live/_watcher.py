"""Collects the state of a vector for pages and the terminal."""

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

_LOOK_INTERVAL = 0.05
"""Seconds between calls of ``look`` by the stepping thread."""

DEFAULT_REFRESH = 1.0
"""The default for seconds between states. Building a state takes time of the interpreter."""

_CACHED_FOR = 0.4
"""A state is reused for this fraction of the refresh interval."""


class Watcher:
    """The state of a vector, written by the stepping thread and read by other threads.

    Args:
        title: The title of the page.
        kind: Whether the vector is used for training.
        refresh: Minimum seconds between two states.
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
        """Time that serving pages has taken so far, in other threads."""
        self._started = time.time()
        self._start = time.perf_counter()
        self._ended: str | None = None
        self._spent = self._next_update = 0.0
        self._num_envs = 0
        self._metrics: MetricsHistory | None = None
        self._meter: Meter | None = None
        self._capture: FrameCapture | None = None
        self._workers: list[WorkerState] = []
        self._thread = threading.get_native_id()
        self._loads = WorkerLoads()
        self._changed = threading.Condition()
        self._version = 0
        self._state: tuple[float, int, dict[str, Any]] | None = None

    def attach(self, pool: Pool, plan: str, picture_share: float) -> Meter:
        """Start to watch a pool. Its batches must be counted with the returned meter."""
        self.plan = plan
        self._num_envs = pool.num_envs
        mode = getattr(Autoreset, pool.autoreset_mode.name)
        self._meter = Meter(pool.num_envs, mode, _LOOK_INTERVAL)
        self._metrics = MetricsHistory(self._meter)
        self.frames = FrameStore(pool.num_envs)
        self._capture = FrameCapture(pool, self.frames, picture_share)
        self._workers = pool.worker_states()
        self._start = time.perf_counter()
        self._next_update = self._start + self.refresh
        self.event_log.add("start", plan or f"{pool.num_envs} slots")
        self.notify()
        return self._meter

    def on_batch(self, pool: Pool, observations: Any) -> None:
        """Capture frames and update the state, between two batches, in the stepping thread.

        Args:
            pool: The watched pool.
            observations: The newest batch if it contains all slots, otherwise None.
        """
        start = time.perf_counter()
        self._thread = threading.get_native_id()
        if observations is not None and not pool.in_flight:
            self._capture_frames(observations)
        if start >= self._next_update:
            self._next_update = start + self.refresh
            self._update_workers(pool.worker_states())
            assert self._metrics is not None, "a pool was attached"
            self._metrics.update()
            self.notify()
        self._spent += time.perf_counter() - start

    def log_crash(self, slots: Iterable[int]) -> None:
        """Log that slots have lost their environments, which are replaced by new ones."""
        for slot in slots:
            self.event_log.add(
                "crash", f"slot {slot} lost its environment and starts with a new one"
            )

    def log_error(self, error: BaseException) -> None:
        """Log an exception of a step or reset."""
        self.event_log.add("error", f"{type(error).__name__}: {error}".strip(": "))
        self.notify()

    def end(self, reason: str) -> None:
        """Mark the vector as ended. Only the first call has an effect."""
        if self._ended is not None:
            return
        if self._metrics is not None:
            self._metrics.update()
        self._ended = reason
        self.event_log.add("end", reason)
        self.notify()

    def notify(self) -> None:
        """Wake the threads that wait for a new state."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def wait(self, version: int, timeout: float) -> int:
        """Wait until there is a newer version of the state or the timeout; return the version."""
        with self._changed:
            self._changed.wait_for(lambda: self._version > version, timeout)
            return self._version

    def state(self, after: int = 0) -> dict[str, Any]:
        """Return the state as plain data, with the log entries after this number."""
        entries = [entry._asdict() for entry in self.event_log.after(after)]
        return {**self._common_state(), "log": entries}

    def _common_state(self) -> dict[str, Any]:
        with self._changed:
            now = time.time()
            cached = self._state
            fresh_until = self.refresh * _CACHED_FOR
            if cached and cached[1] == self._version and now - cached[0] < fresh_until:
                return cached[2]
            state = self._build_state(now)
            self._state = now, self._version, state
            return state

    def _build_state(self, now: float) -> dict[str, Any]:
        loads = self._loads.measure(self._workers, self._thread)
        workers = [
            worker_as_dict(worker, load) for worker, load in zip(self._workers, loads, strict=True)
        ]
        metrics = _NO_METRICS if self._metrics is None else self._metrics.as_dict()
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "started": self._started,
            "now": now,
            "ended": self._ended,
            "num_envs": self._num_envs,
            "plan": self.plan,
            **metrics,
            "workers": workers,
            "wins": self.wins,
            "training": self.training,
            "pictures": self.frames.as_dict(),
            "cost": self._cost(),
        }

    def _cost(self) -> float | None:
        if self._meter is None or not self._meter.batches:
            return None
        spent = self._spent + self._meter.spent + self.page_seconds
        return spent / max(time.perf_counter() - self._start, 1e-9)

    def _capture_frames(self, observations: Any) -> None:
        assert self._capture is not None
        assert self._meter is not None, "a pool was attached"
        try:
            self._capture.capture(observations, self._meter.latest)
        except (
            Exception
        ) as error:  # environments may raise anything when they render; stepping continues
            self.log_error(error)

    def _update_workers(self, states: list[WorkerState]) -> None:
        before = {state.name: state.restarts for state in self._workers}
        for state in states:
            restarts = state.restarts - before.get(state.name, state.restarts)
            if restarts > 0:
                location = worker_as_dict(state, None)["location"]
                self.event_log.add("restart", f"{state.name} was replaced by {location}")
        self._workers = states


_NO_METRICS: dict[str, Any] = {
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
