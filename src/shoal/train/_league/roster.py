"""The list of league members, and the rule by which surplus members are dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import msgspec

from shoal.train._league.members import Frozen, Member

__all__ = ["Roster"]


class Roster:
    """The members of a league, in the order in which they joined.

    Args:
        size: Maximum number of frozen players.
        scripted: Names of the scripted players, which are members from the start.
    """

    def __init__(self, size: int, scripted: Sequence[str] = ()) -> None:
        self.size = size
        self.members = [Member(name, "scripted", 0, None) for name in scripted]
        self._counts: dict[Frozen, int] = {"snapshot": 0, "exploiter": 0}
        self._former: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return any(member.name == name for member in self.members)

    def was_member(self, name: str) -> bool:
        """Whether a member with this name was dropped."""
        return name in self._former

    def add(self, role: Frozen, step: int) -> Member:
        """Add a player frozen at a step of the run, with a new name."""
        self._counts[role] += 1
        name = f"{role}-{self._counts[role]}"
        member = Member(name, role, index(step), f"{name}.pt")
        self.members.append(member)
        return member

    def drop_surplus(self, strength: Callable[[str], float]) -> list[Member]:
        """Drop members until the maximum size is met, and return them.

        The weakest snapshot is dropped first (the oldest of equals); the newest snapshot is always
        kept. Exploiters are kept because each uses a weakness that snapshots do not. The weakest
        exploiter, except the newest, is dropped only if no older snapshot remains.

        Args:
            strength: Returns the strength of the player with a given name.
        """
        dropped = []
        while len(self._frozen("snapshot") + self._frozen("exploiter")) > self.size:
            old = self._frozen("snapshot")[:-1] or self._frozen("exploiter")[:-1]
            weakest = min(old, key=lambda member: strength(member.name))
            self.members.remove(weakest)
            self._former.add(weakest.name)
            dropped.append(weakest)
        return dropped

    def state(self) -> dict[str, Any]:
        """Return the state without the size as plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(
            _RosterState(self.members, self._counts, sorted(self._former))
        )
        return plain

    @classmethod
    def from_state(cls, size: int, state: dict[str, Any]) -> Roster:
        """Create a roster from the result of :meth:`state`."""
        saved = msgspec.convert(state, _RosterState)
        roster = cls(size)
        roster.members, roster._counts = saved.members, saved.counts
        roster._former = set(saved.former)
        return roster

    def _frozen(self, role: Frozen) -> list[Member]:
        return [member for member in self.members if member.role == role]


class _RosterState(msgspec.Struct, forbid_unknown_fields=True):
    members: list[Member]
    counts: dict[Frozen, int]
    former: list[str]
