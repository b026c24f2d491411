"""What a pool needs of its workers, be they processes or threads."""

from __future__ import annotations

from typing import Any, Protocol

from shoal.pools._messages import Message

__all__ = ["WorkerTransport"]


class WorkerTransport(Protocol):
    """Carries messages to and from the workers of a pool, and ends them."""

    def pack(self, message: Message) -> Any:
        """Make a message ready to send."""

    def send(self, worker: int, packed: Any, timeout: float | None = None) -> None:
        """Send a packed message, which the board has announced to the worker.

        Raises:
            ReceiveTimeoutError: The worker did not read it in time.
        """

    def receive(self, worker: int, seconds: float) -> Message | None:
        """Return the oldest message of a worker, or None if none arrives in time.

        The message stays until :meth:`discard_received`, so an interrupt does not lose it.
        """

    def discard_received(self, worker: int) -> None:
        """Discard the message of a worker that was received."""

    def location(self, worker: int) -> tuple[int | None, int | None]:
        """Return (process id, None), or (None, thread id) for a thread of this process."""

    @property
    def can_be_killed(self) -> bool:
        """Whether a worker can be ended in the middle of a step."""

    def end(self, terminate: bool, timeout: float | None) -> BaseException | None:
        """Wait for workers that were sent ``Close``.

        Args:
            terminate: End them at once, if that is possible.
            timeout: Seconds until workers that are still running are killed.

        Returns:
            The first exception that closing an environment has raised.
        """
