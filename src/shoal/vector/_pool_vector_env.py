"""The Gymnasium frontend: any pool as a ``gymnasium.vector.VectorEnv``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import Env
from gymnasium.error import AlreadyPendingCallError

from shoal._plan import Plan
from shoal.errors import ResetMaskError
from shoal.pools import Batch, Pool
from shoal.pools._base import SlotChoice
from shoal.pools._env_calls import EnvironmentCalls
from shoal.vector._infos import InfoFormat, format_infos
from shoal.vector._reset_mask import split_reset_mask
from shoal.vector._seeding import Seed, Seeding, slot_seeds

__all__ = ["VectorEnv"]

Arrays = npt.NDArray[Any]


class VectorEnv(EnvironmentCalls, gymnasium.vector.VectorEnv[Any, Any, Arrays]):
    """A Gymnasium vector environment on top of a pool.

    In addition to Gymnasium's interface it has ``send`` and ``recv``, which step some slots
    independently of the others, and it is a context manager.

    Args:
        pool: The pool that steps the environments. The vector owns and closes it.
        info_format: The format of ``infos``; see :data:`shoal.vector._infos.InfoFormat`.
        seeding: How one seed becomes a seed per slot; see
            :func:`shoal.vector._seeding.slot_seeds`.
        batch_size: Number of slots that ``recv`` returns by default.

    Example:
        >>> import shoal
        >>> with shoal.make("CartPole-v1", num_envs=3) as envs:
        ...     observations, infos = envs.reset(seed=42)
        ...     observations, rewards, terminated, truncated, infos = envs.step([1, 0, 1])
        ...     rewards
        array([1., 1., 1.])
    """

    plan: Plan | None = None
    """The choice of the pool and its reason, if :func:`shoal.make` made the vector."""

    def __init__(
        self,
        pool: Pool,
        *,
        info_format: InfoFormat = "dict",
        seeding: Seeding = "adjacent",
        batch_size: int | None = None,
    ) -> None:
        self._pool = pool
        self._batch_size = batch_size
        self._info_format = info_format
        self._seeding = seeding
        self._has_observations = False  # of every slot
        self.num_envs = pool.num_envs
        self.autoreset_mode = pool.autoreset_mode
        self.metadata = {**pool.metadata, "autoreset_mode": pool.autoreset_mode}
        self.render_mode = pool.render_mode
        self.single_observation_space = pool.spaces.single_observation
        self.observation_space = pool.spaces.observation
        self.single_action_space = pool.spaces.single_action
        self.action_space = pool.spaces.action

    @property
    def pool(self) -> Pool:
        """The pool that steps the environments; other frontends can be built on it.

        It can be replaced by a pool of the same slots, such as one that wraps it.
        """
        return self._pool

    @pool.setter
    def pool(self, pool: Pool) -> None:
        self._pool = pool

    @property
    def seeding(self) -> Seeding:
        """How one seed becomes a seed per slot."""
        return self._seeding

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset all slots, or those that ``options["reset_mask"]`` selects.

        Args:
            seed: None, one integer for the whole vector, or one integer or None for each slot.
            options: Passed to each environment, without the mask. The dict is not modified.

        Returns:
            The observations of all slots, and the infos of those that were reset.
        """
        mask, options = split_reset_mask(options, self.num_envs)
        seeds = slot_seeds(seed, self.num_envs, self._seeding)
        if mask is None:
            self._pool.reset(None, seeds, options)
            batch = self._pool.recv()
            self._has_observations = True
            return batch.observations, self._format_infos(batch)
        if not self._has_observations and not mask.all():
            raise ResetMaskError(
                f"slot {np.argmin(mask)} has never been reset: the first reset must include it"
            )
        if self._pool.in_flight:
            raise AlreadyPendingCallError(
                f"{self._pool.in_flight} slots are in flight: call recv before resetting others",
                "recv",
            )
        slots = np.flatnonzero(mask)
        self._pool.reset(slots, [seeds[slot] for slot in slots], options)
        batch = self._pool.recv()
        self._has_observations = True
        raw = batch.raw_infos
        if raw is not None:
            raw = [(int(slots[row]), info) for row, info in raw[0]], None
        infos = format_infos(raw, self.num_envs, self._info_format)
        return self._pool.latest(), infos

    def step(self, actions: Any) -> tuple[Any, Arrays, Arrays, Arrays, Any]:
        """Step every slot, and return the results in slot order."""
        observations, rewards, terminated, truncated, raw = self._pool.step(actions)
        self._has_observations = True
        if raw is None and self._info_format != "list":  # the common case, without a call
            return observations, rewards, terminated, truncated, {}
        infos = format_infos(raw, self.num_envs, self._info_format)
        return observations, rewards, terminated, truncated, infos

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Start to step slots, all by default, with one action for each."""
        self._pool.send(actions, slots)

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        slots: SlotChoice = None,
    ) -> Batch:
        """Receive slots that were sent, in the order in which they finish.

        Args:
            min_slots: Number of slots to wait for. By default ``batch_size``, or all slots in
                flight if no batch size was chosen.
            timeout: Maximum seconds to wait, None for no limit.
            slots: Wait for these slots instead, and return them in this order. With two groups of
                slots, one can be processed while the other is stepped.

        Raises:
            ReceiveTimeoutError: The timeout has expired. The slots in flight can still be received.
        """
        max_slots = None
        if min_slots is None and slots is None and self._batch_size is not None:
            min_slots = max_slots = min(self._batch_size, self._pool.in_flight) or None
        batch = self._pool.recv(min_slots, timeout, max_slots=max_slots, slots=slots)
        self._has_observations |= len(batch.slots) == self.num_envs
        return batch._replace(infos=self._format_infos(batch))

    def _format_infos(self, batch: Batch) -> Any:
        return format_infos(batch.infos, len(batch.slots), self._info_format)

    @property
    def envs(self) -> list[Env[Any, Any]]:
        """The environments, if they are in this process; entries may be replaced."""
        envs = self._pool.envs
        if envs is None:
            raise AttributeError("the environments are not in this process: use call() instead")
        return envs

    @envs.setter
    def envs(self, envs: Sequence[Env[Any, Any]]) -> None:
        if len(envs) != self.num_envs:
            raise ValueError(f"got {len(envs)} environments for {self.num_envs} slots")
        self.envs[:] = envs

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The random generator of each environment."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of each environment's generator."""
        return self.get_attr("np_random_seed")

    def close_extras(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment; ``close`` calls this once and passes its arguments on.

        Args:
            terminate: Kill workers at once, without closing their environments.
            timeout: Seconds after which workers that have not ended are killed.
        """
        pool = getattr(self, "_pool", None)
        if pool is not None:  # None if the constructor failed
            pool.close(terminate=terminate, timeout=timeout)

    def __del__(self) -> None:
        if not getattr(self, "closed", True) and hasattr(self, "_pool"):
            self.closed = True
            self._pool.abandon()

    def __enter__(self) -> VectorEnv:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
