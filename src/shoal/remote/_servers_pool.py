"""The pool of a client with several servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.pools._base import SlotChoice, slot_numbers
from shoal.pools._joined import EachSlot, JoinedPool
from shoal.remote._pool import Deadlines, RemotePool, each_deadline
from shoal.remote._stats import Stats, stats_of_all

__all__ = ["ServersPool"]


class ServersPool(JoinedPool):
    """Slots of several servers, over one connection each."""

    def __init__(self, pools: Sequence[RemotePool]) -> None:
        super().__init__(pools)
        self._servers = list(pools)

    def begin_step(self, actions: Any, deadlines: Deadlines = None) -> None:
        """Check actions for every slot, and send them; deadlines are as in ``send``."""
        self._begin_step(actions, _each(deadlines, self.num_envs))

    def send(self, actions: Any, slots: SlotChoice = None, *, deadlines: Deadlines = None) -> None:
        """Check actions, one for each of these slots, and send them to their servers."""
        chosen = slot_numbers(slots, self.num_envs)
        self._send(actions, chosen, _each(deadlines, len(chosen)))

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Have the servers take back what has not begun; it is received as not executed.

        Returns the slots that are not in flight any more, of which there are none here.
        """
        for pool, _, own in self._shares(slot_numbers(slots, self.num_envs)):
            assert isinstance(pool, RemotePool)
            pool.cancel(own)
        return []

    def stats(self) -> Stats:
        """What the connections have done so far."""
        return stats_of_all([server.stats() for server in self._servers])


def _each(deadlines: Deadlines, count: int) -> EachSlot:
    """Deadlines as an argument that has a value for each slot; none where there are none."""
    each = each_deadline(deadlines, count)
    return {"deadlines": each} if each else {}
