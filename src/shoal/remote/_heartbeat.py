"""The thread of a client that is at something else."""

from __future__ import annotations

import threading
from typing import Protocol

__all__ = ["Heart"]


class Beating(Protocol):
    """Something that has a heart."""

    def heartbeat(self) -> None:
        """Let the server know that we are there, and come back if we are not."""


class Heart:
    """A thread that lets a client be heard while it thinks, and notices a lost connection."""

    def __init__(self, link: Beating, pause: float) -> None:
        self._stopped = threading.Event()
        self._link: Beating | None = link
        self._pause = pause
        self._thread = threading.Thread(target=self._beat, name="shoal heart", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._stopped.wait(self._pause):
            link = self._link
            if link is None:
                return
            link.heartbeat()

    def stop(self) -> None:
        """Beat no more; it waits for a beat that is under way, but not for long."""
        self._link = None
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(2.0)
