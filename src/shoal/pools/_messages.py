"""What a pool and its workers say to each other beyond what the board can tell.

Most steps need none of this: tasks and outcomes are numbers on the board, values lie in the arena.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from shoal._types import Episode, Event, StepEvents
from shoal.pools._environments import Called

__all__ = [
    "Call",
    "Close",
    "Closed",
    "Mailbox",
    "Message",
    "Outcome",
    "Reply",
    "Reset",
    "Revive",
    "Step",
]

Slots = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """Step these slots, all of the worker's if None, with actions that are not in the arena."""

    slots: Slots | None
    bank: int
    extras: Any


@dataclass(frozen=True)
class Reset:
    """Reset these slots."""

    slots: Slots
    seeds: Sequence[int | None]
    options: dict[str, Any] | None


@dataclass(frozen=True)
class Revive:
    """Reset these slots, whose worker was lost, and report them as truncated.

    ``finals`` has a last observation for each slot, where infos must tell them. In a round, the
    other slots of the share are stepped, with these extras, and the share is reported as one.
    """

    slots: Slots
    seeds: Sequence[int | None]
    finals: Sequence[Any] | None
    bank: int
    in_round: bool
    extras: Any = None


@dataclass(frozen=True)
class Call:
    """Reach the environments of these slots, as a pool's ``call`` does."""

    ticket: int
    slots: Slots
    what: Called
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Close:
    """Close the environments and end."""


@dataclass(frozen=True)
class Outcome:
    """What the board cannot tell of a slot's step or reset; slot None stands for a whole share."""

    slot: int | None
    events: list[Event] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    errors: list[tuple[int, BaseException]] = field(default_factory=list)
    objects: Any = None

    @classmethod
    def of(cls, slot: int | None, told: StepEvents | None, objects: Any = None) -> Outcome:
        """An outcome from what the stepper tells."""
        events, episodes, errors = told or (None, None, None)
        return cls(slot, events or [], episodes or [], errors or [], objects)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that the board cannot tell."""
        return not (self.events or self.episodes or self.errors) and self.objects is None


@dataclass(frozen=True)
class Reply:
    """The results of a call: one for each slot, up to the first that failed."""

    ticket: int
    results: list[Any]
    error: BaseException | None = None


@dataclass(frozen=True)
class Closed:
    """The environments are closed, and the worker ends."""

    error: BaseException | None = None


Message = Step | Reset | Revive | Call | Close | Outcome | Reply | Closed


class Mailbox(Protocol):
    """A worker's end of the way to its pool."""

    def receive(self) -> Message:
        """Wait for the next message."""

    def pack(self, message: Message) -> Any:
        """Make a message ready to send; what cannot be sent becomes an error in its place."""

    def send(self, packed: Any) -> None:
        """Send what was packed."""
