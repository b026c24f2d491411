"""Hooks that run when the interpreter exits or the process forks.

A thread that waits in native code at interpreter exit would abort the process, so servers and
client connections, which have such threads, are closed first. A forked child inherits connections
of its parent, which it must neither use nor close.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

__all__ = ["close_at_exit", "closing_signals", "release_in_children"]


class Closable(Protocol):
    """An object with threads."""

    def close(self) -> None:
        """End the threads."""


class Releasable(Protocol):
    """An object with connections."""

    def release_in_child(self) -> None:
        """Release the connections in a forked child without closing those of the parent."""


_closables: WeakSet[Closable] = WeakSet()
_releasables: WeakSet[Releasable] = WeakSet()


def close_at_exit(closable: Closable) -> None:
    """Close an object at interpreter exit if it still exists."""
    _closables.add(closable)


def release_in_children(releasable: Releasable) -> None:
    """Release an object's connections in forked children."""
    _releasables.add(releasable)


@atexit.register
def _close_all() -> None:
    for closable in list(_closables):
        try:
            closable.close()
        except Exception:
            traceback.print_exc()


def _release_all() -> None:
    _closables.clear()
    for releasable in list(_releasables):
        releasable.release_in_child()


os.register_at_fork(after_in_child=_release_all)


@contextmanager
def closing_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP too; does nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) == signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
