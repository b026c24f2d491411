"""The vector that ``connect`` returns: Gymnasium's interface with deadlines and statistics."""

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
    """Slots of one or several servers as a vector; see :func:`shoal.connect`."""

    _pool: RemotePool | ServersPool

    def step(self, actions: Any, *, deadlines: Deadlines = None) -> Any:
        """Step every slot, and return the results in slot order.

        Args:
            actions: One action per slot.
            deadlines: Seconds, one value for all slots or one per slot. A slot that misses its
                deadline returns its newest observation and the info ``status``: ``"timeout"`` if
                the action is still being executed (the info ``late`` of the slot's next response
                then holds its result), ``"not executed"`` if it never will be. A device with a
                ``cancel`` method is asked to cancel. Deadlines have no effect while an environment
                that the server steps in its own thread, or a Gymnasium vector, is stepping.
        """
        if deadlines is None:
            return super().step(actions)
        self._pool.begin_step(actions, deadlines)
        *results, raw = self._pool.end_step()
        return (*results, format_infos(raw, self.num_envs, self._info_format))

    def send(self, actions: Any, slots: SlotChoice = None, *, deadlines: Deadlines = None) -> None:
        """Start to step these slots, by default all; ``deadlines`` is as in ``step``."""
        self._pool.send(actions, slots, deadlines=deadlines)

    def cancel(self, slots: SlotChoice = None) -> None:
        """Cancel steps that have not started; they are received with status "not executed"."""
        self._pool.cancel(slots)

    def stats(self) -> Stats:
        """Return round-trip times, the server's share of them, byte counts and reconnects.

        With several servers, the statistics are combined; ``stats().servers`` has those of each.
        """
        return self._pool.stats()
