"""Ctrl-C while a run goes on: the first one is a request to stop at the next good moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interrupts"]


class Interrupts:
    """Notes SIGINT instead of raising, once; a second one interrupts as ever.

    Outside of the main thread, where signals cannot be caught, it does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._raises = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # and not ignored, as in the background of a script
                self._before = before
                signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.requested = True
        signal.signal(signal.SIGINT, self._before)
        if self._raises:
            raise KeyboardInterrupt

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """For work that can be abandoned: within it, the first one interrupts, too."""
        self._raises = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._raises = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
