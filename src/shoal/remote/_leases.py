"""Who has something that there is one of."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from shoal.remote._session import Session

__all__ = ["Claim", "HeldError", "Lease"]


class HeldError(Exception):
    """Somebody else has it, and keeps it."""


@dataclass(eq=False)
class Claim:
    """The wish of a client to have it, and its session once there is one."""

    client: str
    priority: int
    session: Session | None = None
    since: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        return f"{self.client or 'a client'} (priority {self.priority})"


class Lease:
    """One owner at a time; a claim of a higher priority takes over."""

    def __init__(self) -> None:
        self._owner: Claim | None = None
        self._news = threading.Condition()

    def acquire(self, claim: Claim, patience: float) -> None:
        """Become the owner, and let one of a lower priority go; wait for that, so long.

        Raises:
            HeldError: The owner has the same priority, or a higher one, or does not let go.
        """
        begun = time.monotonic()
        deadline = begun + patience
        with self._news:
            while self._owner is not None:
                owner = self._owner
                if claim.priority <= owner.priority:
                    seconds = time.monotonic() - owner.since
                    raise HeldError(f"{owner} has had it for {seconds:.0f} seconds")
                if owner.session is not None:
                    owner.session.end("lease", f"{claim} has taken over")
                    if time.monotonic() > begun + patience / 2:
                        owner.session.cut()
                if not self._news.wait(min(0.05, max(0.0, deadline - time.monotonic()))) and (
                    time.monotonic() > deadline
                ):
                    raise HeldError(f"{owner} does not let go of it")
            self._owner = claim

    def release(self, claim: Claim) -> None:
        """Be the owner no more."""
        with self._news:
            if self._owner is claim:
                self._owner = None
                self._news.notify_all()
