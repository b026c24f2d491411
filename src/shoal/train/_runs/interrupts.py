"""Handling of Ctrl-C during a run: the first interrupt requests a stop after the current step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interrupts"]


class Interrupts:
    """Context manager that records the first SIGINT; a second one raises KeyboardInterrupt.

    It does nothing outside the main thread, where signal handlers cannot be installed.
    """

    def __init__(self) -> None:
        self.requested = False
        self._raise_immediately = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # False if SIGINT is ignored, as for background jobs of a shell
                self._before = before
                signal.signal(signal.SIGINT, self._record)
        return self

    def _record(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.requested = True
        signal.signal(signal.SIGINT, self._before)
        if self._raise_immediately:
            raise KeyboardInterrupt

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """Raise KeyboardInterrupt already on the first SIGINT, for work that can be aborted."""
        self._raise_immediately = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._raise_immediately = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
