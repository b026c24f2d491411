"""What must be closed before the interpreter ends, and what a forked child must leave alone.

A thread that waits in native code when the interpreter ends cannot go on, and cannot end: the
process would abort. Servers and the connections of clients have such threads. And a child has its
parent's connections, but must neither use nor end them.
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

__all__ = ["close_at_exit", "closing_signals", "forget_in_children"]


class Closable(Protocol):
    """Something that has threads."""

    def close(self) -> None:
        """End them."""


class Forgettable(Protocol):
    """Something that has connections."""

    def forget(self) -> None:
        """Let go of them, without ending them, in the child."""


_open: WeakSet[Closable] = WeakSet()
_ours: WeakSet[Forgettable] = WeakSet()


def close_at_exit(thing: Closable) -> None:
    """Close it when the interpreter ends, if it is still there then."""
    _open.add(thing)


def forget_in_children(thing: Forgettable) -> None:
    """Let forked children forget it."""
    _ours.add(thing)


@atexit.register
def _close_all() -> None:
    for thing in list(_open):
        try:
            thing.close()
        except Exception:
            traceback.print_exc()  # the others are closed all the same


def _forget_all() -> None:
    _open.clear()
    for thing in list(_ours):
        thing.forget()


os.register_at_fork(after_in_child=_forget_all)


@contextmanager
def closing_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP be what Ctrl-C is, in the main thread, for a while."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) == signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
