"""The messages between a pool and its workers.

Most steps need no message: tasks and outcomes are numbers on the board, and values lie in the
arena.
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
    "RestartSlots",
    "Step",
]

Slots = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """Step these slots (None: the whole share) with actions that are not in the arena."""

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
class RestartSlots:
    """Reset these slots, whose worker was lost, and report them as truncated.

    ``finals`` has the final observation of each slot if infos must report it. In a round, the other
    slots of the share are stepped, with these extras, and the share is reported as one.
    """

    slots: Slots
    seeds: Sequence[int | None]
    finals: Sequence[Any] | None
    bank: int
    in_round: bool
    extras: Any = None


@dataclass(frozen=True)
class Call:
    """Call the environments of these slots, as ``Pool.call`` does."""

    number: int
    slots: Slots
    what: Called
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Close:
    """Close the environments and end."""


@dataclass(frozen=True)
class Outcome:
    """Events of a slot's step or reset that do not fit on the board; slot None: a whole share."""

    slot: int | None
    events: list[Event] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    errors: list[tuple[int, BaseException]] = field(default_factory=list)
    objects: Any = None

    @classmethod
    def of(cls, slot: int | None, reported: StepEvents | None, objects: Any = None) -> Outcome:
        """Make an outcome of the events that a stepper returned."""
        events, episodes, errors = reported or (None, None, None)
        return cls(slot, events or [], episodes or [], errors or [], objects)

    @property
    def is_empty(self) -> bool:
        """Whether no message is needed."""
        return not (self.events or self.episodes or self.errors) and self.objects is None


@dataclass(frozen=True)
class Reply:
    """The results of a call: one for each slot, up to the first that failed."""

    call: int
    results: list[Any]
    error: BaseException | None = None


@dataclass(frozen=True)
class Closed:
    """Report that the environments are closed and the worker ends."""

    error: BaseException | None = None


Message = Step | Reset | RestartSlots | Call | Close | Outcome | Reply | Closed


class Mailbox(Protocol):
    """A worker's end of the connection to its pool."""

    def receive(self) -> Message:
        """Wait for the next message."""

    def pack(self, message: Message) -> Any:
        """Make a message ready to send; one that cannot be sent is replaced by an error."""

    def send(self, packed: Any) -> None:
        """Send a packed message."""
