"""The heartbeat thread of a client."""

from __future__ import annotations

import threading
from typing import Protocol

__all__ = ["HeartbeatThread"]


class HeartbeatTarget(Protocol):
    """A connection that needs heartbeats."""

    def heartbeat(self) -> None:
        """Send a heartbeat, and reconnect if the connection is lost."""


class HeartbeatThread:
    """A thread that sends heartbeats while the client is busy, and notices a lost connection.

    Args:
        link: The connection.
        interval: Seconds between heartbeats.
    """

    def __init__(self, link: HeartbeatTarget, interval: float) -> None:
        self._stopped = threading.Event()
        self._link: HeartbeatTarget | None = link
        self._interval = interval
        self._thread = threading.Thread(target=self._run, name="shoal heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            link = self._link
            if link is None:
                return
            link.heartbeat()

    def stop(self) -> None:
        """Stop the thread; wait briefly for a heartbeat in progress."""
        self._link = None
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(2.0)
