"""Agents times environments as one batch, behind Gymnasium's vector interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import ResetMaskError
from shoal.pettingzoo._agents_pool import AgentsPool
from shoal.pettingzoo._team_env import Agent
from shoal.pettingzoo._teams import Teams
from shoal.pettingzoo._views import told_alive
from shoal.pools._forwarding import find_pool
from shoal.vector._infos import InfoFormat
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._reset_mask import split_reset_mask
from shoal.vector._seeding import Seed, Seeding, slot_seeds

__all__ = ["AgentVectorEnv"]


class AgentVectorEnv(VectorEnv):
    """A vector in which every agent of every environment is a slot.

    Slot ``k`` is agent ``k % len(agents)`` of environment ``k // len(agents)``. It has all that
    Shoal's vectors have; what follows from slots that share an environment:

    - ``infos["alive"]`` tells at every reset and step whose agents can act next, as ``alive`` does.
      An agent that is gone is shown zeros, earns 0, and its actions, which must still be of the
      action space, are ignored. ``terminated`` and ``truncated`` say once that it ends: in the step
      in which it does. So what to learn from are the slots that were alive before a step.
    - An environment is reset when its last agent is gone, in the way of ``autoreset_mode``. With
      SAME_STEP every slot whose agent ends has its last observation in ``infos["final_obs"]``, and
      shows what comes next: the new episode, or nothing while others go on.
    - One seed counts up, or is spread, over environments, and a list has a seed for each of them.
      A reset mask is one of slots, and its rule is that of ``reset``.
    - Attributes and methods, pictures too, are those of environments: ``call`` has one result for
      each of these, not for each slot.
    - ``send`` and ``recv`` are of whole environments; ``slots_of`` gives their slots.
    - What an environment tells of no agent in particular is told in all of its slots. An info of
      its own that is called ``alive`` gives way to that of the vector.
    - ``statistics=True`` reports the episode of each agent, which ends with the agent.

    Args:
        teams: The environments, a vector of Shoal's with all that it owns.
        statistics: Whether infos report the episodes of agents.
        owner: The vector that the teams' pool was made for, which keeps it open.
        info_format: As in :func:`shoal.make`.
        seeding: As there, over environments.
        batch_size: As there: how many environments ``recv`` returns where it is not told.
    """

    def __init__(
        self,
        teams: Teams,
        owner: VectorEnv,
        *,
        statistics: bool = False,
        info_format: InfoFormat = "dict",
        seeding: Seeding = "adjacent",
        batch_size: int | None = None,
    ) -> None:
        pool = AgentsPool(teams, statistics=statistics)
        rows = None if batch_size is None else batch_size * len(pool.agents)
        super().__init__(pool, info_format=info_format, seeding=seeding, batch_size=rows)
        self._owner = owner
        self.plan = owner.plan

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._owner.num_envs} environments of {len(self.agents)} "
            f"agents, num_envs={self.num_envs})"
        )

    @property
    def _agents_pool(self) -> AgentsPool:
        return find_pool(self._pool, AgentsPool)

    @property
    def agents(self) -> tuple[Agent, ...]:
        """All agents that there can be in an environment, in the order of its slots."""
        return self._agents_pool.agents

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Which slots have an agent that can act next."""
        return self._agents_pool.alive

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Begin new episodes, in all environments or in those that a mask selects.

        Args:
            seed: None, one integer, or one (or None) for each environment.
            options: Given to each environment, without ``"reset_mask"``. That is a mask of slots;
                reset is each environment of which it selects all that are alive. Where it selects
                none of them the environment goes on, so ``terminated | truncated`` is a good mask.

        Raises:
            ResetMaskError: Of an environment, the mask selects some that are alive, but not all.
        """
        count = len(self.agents)
        mask, rest = split_reset_mask(options, self.num_envs)
        seeds = np.repeat(
            np.array(slot_seeds(seed, self.num_envs // count, self._seeding), object), count
        ).tolist()
        if mask is None:
            return super().reset(seed=seeds, options=options)
        chosen = np.repeat(self._ended(mask), count)
        infos: Any = [{} for _ in chosen] if self._info_format == "list" else {}
        if chosen.any():
            masked = {**(rest or {}), "reset_mask": chosen}
            observations, infos = super().reset(seed=seeds, options=masked)
        else:
            observations = self._pool.latest()
        if self._info_format != "list":
            infos |= told_alive(self.alive)
        return observations, infos

    def _ended(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The environments of which the mask selects all agents that are alive."""
        count = len(self.agents)
        selected, alive = mask.reshape(-1, count), self._agents_pool.roster.alive
        left_out = alive & ~selected
        halved = np.flatnonzero((alive & selected).any(axis=1) & left_out.any(axis=1))
        if halved.size:
            number = int(halved[0])
            left = self.agents[int(np.argmax(left_out[number]))]
            raise ResetMaskError(
                f"the mask selects some agents of environment {number} that are alive, but not "
                f"{left!r}: an environment is reset with all of its agents"
            )
        return np.asarray(selected.any(axis=1) & ~left_out.any(axis=1))

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute."""
        return self._owner.call(name, *args, **kwargs)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: one value for all, or a list or tuple of values."""
        self._owner.set_attr(name, values)

    def slots_of(
        self, environments: int | Sequence[int] | npt.NDArray[np.integer[Any]]
    ) -> npt.NDArray[np.int64]:
        """The slots of these environments, for ``send`` and ``recv``.

        >>> from shoal.pettingzoo import make
        >>> with make("shoal/Hockey-v0", num_envs=4) as envs:
        ...     envs.slots_of([0, 3])
        array([0, 1, 6, 7])
        """
        count = len(self.agents)
        chosen = np.atleast_1d(np.asarray(environments))
        slots: npt.NDArray[np.int64] = (chosen[:, None] * count + np.arange(count)).ravel()
        return slots

    def close_extras(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment; ``close`` calls this once, and hands its arguments on."""
        super().close_extras(terminate=terminate, timeout=timeout)
        if "_owner" in vars(self):
            self._owner.close()

    def __enter__(self) -> AgentVectorEnv:
        return self
