"""League members, and the names of the players in training."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["EXPLOITER", "MAIN", "Frozen", "Member", "Role"]

Role = Literal["main", "snapshot", "exploiter", "scripted"]
Frozen = Literal["snapshot", "exploiter"]

MAIN = "main"
"""Name of the player in training."""

EXPLOITER = "exploiter"
"""Name of the player that learns to beat the main player. Frozen copies get other names."""


class Member(Struct, frozen=True, forbid_unknown_fields=True):
    """A player that no longer learns."""

    name: str
    role: Role
    step: int
    """Step of the run at which the member was added."""
    file: str | None
    """Name of the agent file; None for a scripted player."""
