"""What has happened, line by line."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Literal, NamedTuple

__all__ = ["Entry", "Journal", "Kind"]

Kind = Literal[
    "start", "note", "crash", "restart", "error", "checkpoint", "evaluation", "phase", "end"
]

_KEPT = 500


class Entry(NamedTuple):
    """Something that has happened."""

    n: int
    """Its number, from 1."""
    time: float
    """In seconds, as the system counts them."""
    kind: Kind
    text: str


class Journal:
    """Numbered entries, of which the newest are kept. Any thread may write and read.

    Example:
        >>> journal = Journal()
        >>> journal.add("note", "a step was taken")
        >>> journal.add("crash", "slot 3 has lost its environment")
        >>> [(entry.n, entry.kind) for entry in journal.after(1)]
        [(2, 'crash')]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: deque[Entry] = deque(maxlen=_KEPT)
        self._count = 0

    def add(self, kind: Kind, text: str) -> None:
        """Write something down."""
        with self._lock:
            self._count += 1
            self._entries.append(Entry(self._count, time.time(), kind, text))

    def after(self, number: int) -> list[Entry]:
        """What is kept of the entries after this one."""
        with self._lock:
            return [entry for entry in self._entries if entry.n > number]
