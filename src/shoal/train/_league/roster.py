"""Who is in a league, and who has to go when it is full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import msgspec

from shoal.train._league.members import Frozen, Member

__all__ = ["Roster"]


class Roster:
    """The members of a league, in the order in which they came.

    Args:
        size: How many frozen players there may be.
        scripted: The names of the players that are there from the beginning.
    """

    def __init__(self, size: int, scripted: Sequence[str] = ()) -> None:
        self.size = size
        self.members = [Member(name, "scripted", 0, None) for name in scripted]
        self._made: dict[Frozen, int] = {"snapshot": 0, "exploiter": 0}
        self._former: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return any(member.name == name for member in self.members)

    def was_member(self, name: str) -> bool:
        """Whether there was a member of this name, which is not there any more."""
        return name in self._former

    def add(self, role: Frozen, step: int) -> Member:
        """Take in a player that was frozen at this step of the run, under a name of its own."""
        self._made[role] += 1
        name = f"{role}-{self._made[role]}"
        member = Member(name, role, index(step), f"{name}.pt")
        self.members.append(member)
        return member

    def drop_surplus(self, strength: Callable[[str], float]) -> list[Member]:
        """Let players go until there are no more than may be, and return them.

        The weakest snapshot goes, of equals the oldest, but not the newest snapshot. Exploiters
        stay: each has found a weakness that snapshots do not use. Only where nothing but
        exploiters and the newest snapshot is left, the weakest of the older exploiters goes.

        Args:
            strength: How strong the player of a name is.
        """
        gone = []
        while len(self._frozen("snapshot") + self._frozen("exploiter")) > self.size:
            old = self._frozen("snapshot")[:-1] or self._frozen("exploiter")[:-1]
            weakest = min(old, key=lambda member: strength(member.name))
            self.members.remove(weakest)
            self._former.add(weakest.name)
            gone.append(weakest)
        return gone

    def state(self) -> dict[str, Any]:
        """All of it but the size as plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(
            _RosterState(self.members, self._made, sorted(self._former))
        )
        return plain

    @classmethod
    def from_state(cls, size: int, state: dict[str, Any]) -> Roster:
        """A roster that goes on where that of this state was."""
        saved = msgspec.convert(state, _RosterState)
        roster = cls(size)
        roster.members, roster._made = saved.members, saved.made
        roster._former = set(saved.former)
        return roster

    def _frozen(self, role: Frozen) -> list[Member]:
        return [member for member in self.members if member.role == role]


class _RosterState(msgspec.Struct, forbid_unknown_fields=True):
    members: list[Member]
    made: dict[Frozen, int]
    former: list[str]
