"""The members of a league, and the names that players have."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["EXPLOITER", "MAIN", "Frozen", "Member", "Role"]

Role = Literal["main", "snapshot", "exploiter", "scripted"]
Frozen = Literal["snapshot", "exploiter"]

MAIN = "main"
"""The name of the player that is trained."""

EXPLOITER = "exploiter"
"""The name of the player that learns to beat the main. Frozen, it gets another one."""


class Member(Struct, frozen=True, forbid_unknown_fields=True):
    """A player that does not learn, so that it can be an opponent again and again."""

    name: str
    role: Role
    step: int
    """Of the run, when it was made."""
    file: str | None
    """The name of its checkpoint; None for a scripted player."""
