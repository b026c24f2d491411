"""Ownership of exclusive vectors."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from shoal.remote._session import Session

__all__ = ["Claim", "Lease", "LeaseHeldError"]


class LeaseHeldError(Exception):
    """Another client owns the lease."""


@dataclass(eq=False)
class Claim:
    """A client's claim to a lease, and its session once it has one."""

    client: str
    priority: int
    session: Session | None = None
    since: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        return f"{self.client or 'a client'} (priority {self.priority})"


class Lease:
    """A lease with one owner at a time; a claim with a higher priority takes over."""

    def __init__(self) -> None:
        self._owner: Claim | None = None
        self._changed = threading.Condition()

    def acquire(self, claim: Claim, timeout: float) -> None:
        """Become the owner; end the session of an owner with a lower priority.

        Raises:
            LeaseHeldError: The owner has the same or a higher priority, or does not release the
                lease within the timeout.
        """
        start = time.monotonic()
        deadline = start + timeout
        with self._changed:
            while self._owner is not None:
                owner = self._owner
                if claim.priority <= owner.priority:
                    seconds = time.monotonic() - owner.since
                    raise LeaseHeldError(f"{owner} has had it for {seconds:.0f} seconds")
                if owner.session is not None:
                    owner.session.end("lease", f"{claim} has taken over")
                    if time.monotonic() > start + timeout / 2:
                        owner.session.disconnect()
                if not self._changed.wait(min(0.05, max(0.0, deadline - time.monotonic()))) and (
                    time.monotonic() > deadline
                ):
                    raise LeaseHeldError(f"{owner} does not release it")
            self._owner = claim

    def release(self, claim: Claim) -> None:
        """Release the lease if this claim owns it."""
        with self._changed:
            if self._owner is claim:
                self._owner = None
                self._changed.notify_all()
