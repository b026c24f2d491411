"""What has happened, line by line."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Literal, NamedTuple

__all__ = ["Event", "EventKind", "EventLog"]

EventKind = Literal[
    "start", "note", "crash", "restart", "error", "checkpoint", "evaluation", "phase", "end"
]

_KEPT = 500


class Event(NamedTuple):
    """Something that has happened."""

    n: int
    """Its number, from 1."""
    time: float
    """In seconds, as the system counts them."""
    kind: EventKind
    text: str


class EventLog:
    """Numbered entries, of which the newest are kept. Any thread may write and read.

    Example:
        >>> event_log = EventLog()
        >>> event_log.add("note", "a step was taken")
        >>> event_log.add("crash", "slot 3 has lost its environment")
        >>> [(entry.n, entry.kind) for entry in event_log.after(1)]
        [(2, 'crash')]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: deque[Event] = deque(maxlen=_KEPT)
        self._count = 0

    def add(self, kind: EventKind, text: str) -> None:
        """Write something down."""
        with self._lock:
            self._count += 1
            self._entries.append(Event(self._count, time.time(), kind, text))

    def after(self, number: int) -> list[Event]:
        """What is kept of the entries after this one."""
        with self._lock:
            return [entry for entry in self._entries if entry.n > number]
