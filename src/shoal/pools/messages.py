"""What a pool and its workers say to each other beyond what the board can tell.

Most steps need none of this: tasks and outcomes are numbers on the board, values lie in the arena.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from shoal.types import Event, RawInfos

__all__ = [
    "Call",
    "Close",
    "Closed",
    "Episode",
    "Mailbox",
    "Message",
    "Outcome",
    "Reply",
    "Reset",
    "Revive",
    "Step",
    "outcome_of",
]

Slots = npt.NDArray[np.int64]

Episode = tuple[int, float, int, float]
"""An episode that ended: its slot, return, length and seconds."""


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

    With ``whole`` the slots are the worker's whole share, and are reported together.
    """

    slots: Slots
    seeds: Sequence[int | None]
    bank: int
    whole: bool


@dataclass(frozen=True)
class Call:
    """Call a method of these slots' environments, or read an attribute."""

    ticket: int
    slots: Slots
    name: str
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
    objects: Any = None
    error: BaseException | None = None


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


def outcome_of(
    slot: int | None, raw: RawInfos | None, error: BaseException | None = None, objects: Any = None
) -> Outcome:
    """An outcome from what the stepper says, whose rows are slots."""
    if raw is None:
        return Outcome(slot, error=error, objects=objects)
    events, episodes = raw
    ended: list[Episode] = []
    if episodes is not None:
        mask, returns, lengths, seconds = episodes
        ended = [
            (int(row), float(returns[row]), int(lengths[row]), float(seconds[row]))
            for row in np.flatnonzero(mask)
        ]
    return Outcome(slot, events, ended, objects, error)
