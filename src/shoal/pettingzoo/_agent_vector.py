"""Gymnasium vector environment in which every agent of every environment is a slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import ResetMaskError
from shoal.pettingzoo._agents_pool import AgentsPool
from shoal.pettingzoo._team_env import Agent
from shoal.pettingzoo._teams import Teams
from shoal.pettingzoo._views import alive_infos
from shoal.pools._forwarding import find_pool
from shoal.vector._infos import InfoFormat
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._reset_mask import split_reset_mask
from shoal.vector._seeding import Seed, Seeding, slot_seeds

__all__ = ["AgentVectorEnv"]


class AgentVectorEnv(VectorEnv):
    """A vector in which every agent of every environment is a slot.

    Slot ``k`` is agent ``k % len(agents)`` of environment ``k // len(agents)``. All features of
    Shoal's vectors are available. Because several slots share an environment:

    - ``infos["alive"]`` has at every reset and step a mask of the slots whose agent can act next,
      like ``alive``. A slot whose agent has ended returns zeros as observation and reward, and its
      actions are ignored, though they must be in the action space. ``terminated`` and
      ``truncated`` are set only in the step in which an agent ends. Learn only from slots that
      were alive before a step.
    - An environment is reset as ``autoreset_mode`` defines when its last agent has ended. With
      SAME_STEP, a slot whose agent ends has its final observation in ``infos["final_obs"]`` and
      returns the first observation of the new episode, or zeros if other agents are still alive.
    - A seed is expanded to one seed per environment, and a list has one seed per environment. A
      reset mask selects slots: see :meth:`reset`.
    - Attributes, methods and rendering apply to environments: ``call`` returns one result per
      environment, not per slot.
    - ``send`` and ``recv`` transfer whole environments; ``slots_of`` returns their slots.
    - An info that belongs to no agent is copied to all slots of its environment. An environment's
      own info named ``alive`` is replaced by that of the vector.
    - ``statistics=True`` reports the episode of each agent, which ends when the agent ends.

    Args:
        teams: The environments.
        owner: The vector that owns the pool of ``teams``.
        statistics: Whether infos report the episodes of agents.
        info_format: See :func:`shoal.make`.
        seeding: How a seed is expanded to one seed per environment.
        batch_size: Number of environments that ``recv`` returns by default.
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
        """All possible agents of an environment, in the order of its slots."""
        return self._agents_pool.agents

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Mask of the slots whose agent can act next."""
        return self._agents_pool.alive

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Start new episodes in all environments, or in those that a mask selects.

        Args:
            seed: None, one integer, or a list with one integer (or None) per environment.
            options: Passed to each environment, without ``"reset_mask"``. This mask selects slots.
                An environment is reset if the mask selects a slot of it and every slot that is
                alive. ``terminated | truncated`` is a valid mask.

        Raises:
            ResetMaskError: If the mask selects some, but not all, living agents of an environment.
        """
        count = len(self.agents)
        mask, rest = split_reset_mask(options, self.num_envs)
        seeds = np.repeat(
            np.array(slot_seeds(seed, self.num_envs // count, self._seeding), object), count
        ).tolist()
        if mask is None:
            return super().reset(seed=seeds, options=options)
        chosen = np.repeat(self._selected_environments(mask), count)
        infos: Any = [{} for _ in chosen] if self._info_format == "list" else {}
        if chosen.any():
            masked = {**(rest or {}), "reset_mask": chosen}
            observations, infos = super().reset(seed=seeds, options=masked)
        else:
            observations = self._pool.latest()
        if self._info_format != "list":
            infos |= alive_infos(self.alive)
        return observations, infos

    def _selected_environments(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return a mask of the environments of which all living agents are selected."""
        count = len(self.agents)
        selected, alive = mask.reshape(-1, count), self._agents_pool.roster.alive
        unselected = alive & ~selected
        partial = np.flatnonzero((alive & selected).any(axis=1) & unselected.any(axis=1))
        if partial.size:
            number = int(partial[0])
            agent = self.agents[int(np.argmax(unselected[number]))]
            raise ResetMaskError(
                f"the mask selects living agents of environment {number}, but not {agent!r}: an "
                "environment can only be reset with all of its living agents"
            )
        return np.asarray(selected.any(axis=1) & ~unselected.any(axis=1))

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or get an attribute."""
        return self._owner.call(name, *args, **kwargs)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment, with one value or a list or tuple of values."""
        self._owner.set_attr(name, values)

    def slots_of(
        self, environments: int | Sequence[int] | npt.NDArray[np.integer[Any]]
    ) -> npt.NDArray[np.int64]:
        """Return the slots of these environments, for ``send`` and ``recv``.

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
        """Close all environments. Called by ``close``, with its arguments."""
        super().close_extras(terminate=terminate, timeout=timeout)
        if "_owner" in vars(self):
            self._owner.close()

    def __enter__(self) -> AgentVectorEnv:
        return self
