"""The vector that ``connect`` gives: Gymnasium's interface, and what a network adds to it."""

from __future__ import annotations

from typing import Any

from shoal.pools._base import SlotChoice
from shoal.remote._pool import Deadlines, RemotePool
from shoal.remote._servers_pool import ServersPool
from shoal.remote._stats import Stats
from shoal.vector._infos import format_infos
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["RemoteVectorEnv"]


class RemoteVectorEnv(VectorEnv):
    """Slots of a server, or of several, as a vector; see :func:`shoal.connect`."""

    _pool: RemotePool | ServersPool

    def step(self, actions: Any, *, deadlines: Deadlines = None) -> Any:
        """Step every slot, and return the results in slot order.

        Args:
            actions: One for each slot.
            deadlines: Seconds, for all slots or for each. A slot that is not done by then is
                answered all the same: with its newest observation, and ``status`` in its info,
                which is ``"timeout"`` if the action is being executed still (how it ends is told
                by the info ``late`` of the slot's next answer), and ``"not executed"`` if it never
                will be. A device that has ``cancel`` is told to. Environments that the server
                steps one after the other in one thread, and Gymnasium's vectors, are not looked
                at while one of them is at work.
        """
        if deadlines is None:
            return super().step(actions)
        self._pool.begin_step(actions, deadlines)
        *results, raw = self._pool.end_step()
        return (*results, format_infos(raw, self.num_envs, self._info_format))

    def send(self, actions: Any, slots: SlotChoice = None, *, deadlines: Deadlines = None) -> None:
        """Begin to step these slots, all of them by default; deadlines are as in ``step``."""
        self._pool.send(actions, slots, deadlines=deadlines)

    def cancel(self, slots: SlotChoice = None) -> None:
        """Take back what has not begun; it is received with the status ``"not executed"``."""
        self._pool.cancel(slots)

    def stats(self) -> Stats:
        """Round-trip times, the server's part of them, bytes, and losses of the connection.

        With several servers, all of them together, and ``stats().servers`` one by one.
        """
        return self._pool.stats()
