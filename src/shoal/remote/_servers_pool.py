"""The pool of a client that is connected to several servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.pools._base import SlotChoice, slot_numbers
from shoal.pools._joined import EachSlot, JoinedPool
from shoal.remote._pool import Deadlines, RemotePool, per_slot_deadlines
from shoal.remote._stats import Stats, combine_stats

__all__ = ["ServersPool"]


class ServersPool(JoinedPool):
    """Slots of several servers, over one connection each."""

    def __init__(self, pools: Sequence[RemotePool]) -> None:
        super().__init__(pools)
        self._servers = list(pools)

    def begin_step(self, actions: Any, deadlines: Deadlines = None) -> None:
        """Check actions for every slot, and send them; ``deadlines`` is as in ``send``."""
        self._begin_step(actions, _as_arguments(deadlines, self.num_envs))

    def send(self, actions: Any, slots: SlotChoice = None, *, deadlines: Deadlines = None) -> None:
        """Check actions, one for each of these slots, and send them to their servers."""
        chosen = slot_numbers(slots, self.num_envs)
        self._send(actions, chosen, _as_arguments(deadlines, len(chosen)))

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Cancel steps that have not started; they are received with status "not executed".

        Returns:
            An empty list: cancelled slots stay in flight until they are received.
        """
        for pool, _, own in self._shares(slot_numbers(slots, self.num_envs)):
            assert isinstance(pool, RemotePool)
            pool.cancel(own)
        return []

    def stats(self) -> Stats:
        """Return the combined statistics of all connections."""
        return combine_stats([server.stats() for server in self._servers])


def _as_arguments(deadlines: Deadlines, count: int) -> EachSlot:
    """Return deadlines as a keyword argument with a value per slot; empty if there are none."""
    seconds = per_slot_deadlines(deadlines, count)
    return {"deadlines": seconds} if seconds else {}
