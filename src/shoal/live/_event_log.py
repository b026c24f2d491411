"""The log of events."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Literal, NamedTuple

__all__ = ["Event", "EventKind", "EventLog"]

EventKind = Literal[
    "start", "note", "crash", "restart", "error", "checkpoint", "evaluation", "phase", "end"
]

_MAX_EVENTS = 500


class Event(NamedTuple):
    """An entry of the log."""

    n: int
    """The number of the entry, starting at 1."""
    time: float
    """Unix time in seconds."""
    kind: EventKind
    text: str


class EventLog:
    """Numbered entries, of which the newest are kept. Thread-safe.

    Example:
        >>> event_log = EventLog()
        >>> event_log.add("note", "a step was taken")
        >>> event_log.add("crash", "slot 3 lost its environment")
        >>> [(entry.n, entry.kind) for entry in event_log.after(1)]
        [(2, 'crash')]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: deque[Event] = deque(maxlen=_MAX_EVENTS)
        self._count = 0

    def add(self, kind: EventKind, text: str) -> None:
        """Append an entry."""
        with self._lock:
            self._count += 1
            self._entries.append(Event(self._count, time.time(), kind, text))

    def after(self, number: int) -> list[Event]:
        """Return the kept entries with a higher number."""
        with self._lock:
            return [entry for entry in self._entries if entry.n > number]
