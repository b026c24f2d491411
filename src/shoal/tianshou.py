"""The Tianshou frontend: vectors for Tianshou's collectors and trainers.

.. code-block:: python

    from tianshou.data import Collector, VectorReplayBuffer
    from shoal.tianshou import make                          # was: from tianshou.env import ...

    envs = make("CartPole-v1", num_envs=64)                  # was: SubprocVectorEnv([...] * 64)
    collector = Collector(policy, envs, VectorReplayBuffer(20_000, 64))

For the same seeds and actions, results equal those of Tianshou's ``DummyVectorEnv`` bit for bit,
except that rewards are always float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from operator import index
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from gymnasium.vector import AutoresetMode

from shoal._make import make as make_vector
from shoal._spaces import Layout
from shoal._spaces.layout import Leaf
from shoal._spaces.leaves import batch_leaves, structured
from shoal._types import CRASHED
from shoal.errors import InvalidActionError, MissingExtraError, ReceiveTimeoutError
from shoal.pools import Batch, Pool
from shoal.pools._base import slot_numbers
from shoal.pools._env_access import get_attribute, set_attribute
from shoal.vector._infos import format_infos
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._seeding import slot_seeds
from shoal.vector._vector_env_pool import VectorEnvPool
from shoal.vector.wrappers._base import batch_of

try:
    import torch
    from tianshou.env import BaseVectorEnv
except ImportError as error:
    raise MissingExtraError('tianshou is not installed: pip install "shoal[tianshou]"') from error

__all__ = ["ShoalVectorEnv", "make"]

Array = npt.NDArray[Any]
Slots = npt.NDArray[np.int64]
EnvId = int | Sequence[int] | npt.NDArray[np.integer[Any]] | None
StepResult = tuple[Array, Array, Array, Array, Array]


def make(
    what: Any,
    num_envs: int | None = None,
    *,
    wait_num: int | None = None,
    timeout: float | None = None,
    **options: Any,
) -> ShoalVectorEnv:
    """Create a vector of environments for Tianshou.

    Args:
        what: An argument of :func:`shoal.make`: an id, a kernel, a function or a list of functions.
        num_envs: Number of environments. Defaults to 1, or to the length of the list.
        wait_num: See :class:`ShoalVectorEnv`.
        timeout: See :class:`ShoalVectorEnv`.
        **options: Other options of :func:`shoal.make`, except the autoreset mode: Tianshou resets
            environments itself.

    Example:
        >>> envs = make("CartPole-v1", num_envs=3)
        >>> observations, infos = envs.reset()
        >>> *_, infos = envs.step(np.array([0, 1]), [0, 2])
        >>> infos
        array([{'env_id': 0}, {'env_id': 2}], dtype=object)
        >>> envs.close()
    """
    if wait_num is not None or timeout is not None:
        # With a batch size, the caller drives no slots and can return as soon as some are done.
        options.setdefault("batch_size", wait_num or 1)
    vector = make_vector(what, num_envs, autoreset_mode=AutoresetMode.DISABLED, **options)
    try:
        return ShoalVectorEnv(vector, wait_num=wait_num, timeout=timeout)
    except BaseException:
        vector.close()
        raise


class ShoalVectorEnv(BaseVectorEnv):
    """A vector with Tianshou's interface.

    Slots are stepped and reset by number. The caller resets finished slots, as Tianshou's
    collectors do. Closing this object closes the vector.

    Args:
        envs: A vector created by :func:`shoal.make`, or any other Gymnasium vector environment,
            with or without wrappers. Only a Shoal vector without wrappers can step some of its
            slots, which collecting by ``n_episode`` needs and collecting by ``n_step`` does not.
            The autoreset mode must be DISABLED, or NEXT_STEP, in which an explicit reset replaces
            the automatic one.
        wait_num: For asynchronous collecting: the number of finished slots with which ``step``
            returns. (In Tianshou 2.0, ``AsyncCollector`` only works with policies that have a
            state, with any vector.)
        timeout: For asynchronous collecting: the number of seconds after which ``step`` returns
            the finished slots, at least one.

    Raises:
        ValueError: If the autoreset mode is SAME_STEP, in which a step does not return final
            observations where Tianshou expects them.
        TypeError: If observations are tuples, which Tianshou's buffers do not support.

    Example:
        >>> import shoal
        >>> envs = ShoalVectorEnv(shoal.make("CartPole-v1", num_envs=2))
        >>> envs.seed(1)
        [[1], [2]]
        >>> len(envs), envs.is_async
        (2, False)
        >>> envs.close()
    """

    # The base class forwards some attributes to its workers, which do not exist here.
    __getattribute__ = object.__getattribute__

    def __init__(  # does not call super().__init__(), which would create workers
        self,
        envs: gymnasium.vector.VectorEnv[Any, Any, Any],
        *,
        wait_num: int | None = None,
        timeout: float | None = None,
    ) -> None:
        if not isinstance(envs, gymnasium.vector.VectorEnv):
            raise TypeError(f"expected a gymnasium.vector.VectorEnv, got {type(envs).__name__}")
        self.vector = envs  # the reference keeps the pool open
        self._pool: Pool = envs.pool if isinstance(envs, VectorEnv) else VectorEnvPool(envs)
        self.env_num = count = self._pool.num_envs
        self.wait_num = count if wait_num is None else index(wait_num)
        self.timeout = timeout
        self.is_async = self.wait_num != count or timeout is not None
        self.is_closed = False
        self._check()
        single = self._pool.spaces
        self.observation_space = [single.single_observation] * count
        # Separate objects, because `seed` seeds each of them and collectors sample from them.
        self.action_space = [deepcopy(single.single_action) for _ in range(count)]
        self.metadata = [self._pool.metadata] * count
        self._layout = Layout.of(single.single_observation)
        self._every_slot = np.arange(count)
        self._in_flight: dict[int, None] = {}  # slots in the order of sending
        self._previous: dict[int, Any] = {}  # last observations by slot, for crashes

    def _check(self) -> None:
        if not 1 <= self.wait_num <= self.env_num:
            raise ValueError(
                f"wait_num must be between 1 and the number of environments ({self.env_num}), got "
                f"{self.wait_num}"
            )
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be a positive number, got {self.timeout}")
        if self._pool.autoreset_mode is AutoresetMode.SAME_STEP:
            raise ValueError(
                "the autoreset mode SAME_STEP is not supported, because Tianshou resets slots "
                "itself: create the vector with autoreset_mode=AutoresetMode.DISABLED"
            )
        space = self._pool.spaces.single_observation
        if isinstance(space, spaces.Tuple):
            raise TypeError(f"Tianshou only supports arrays or dicts as observations, got {space}")

    def __len__(self) -> int:
        return self.env_num

    def reset(  # type: ignore[override]
        self,
        env_id: EnvId = None,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Array, Array]:
        """Start new episodes in some slots, or in all slots.

        A reset of all slots discards the steps in flight.

        Args:
            env_id: One or several slots; None for all.
            seed: A seed that is passed to each of these environments unchanged, as Tianshou does.
                Use :meth:`seed` for different seeds.
            options: Options that are passed to each of these environments.

        Returns:
            The observations and infos of these slots, in the order of ``env_id``.
        """
        if env_id is None:
            self._pool.drop()
            self._in_flight.clear()
        slots = self._idle(env_id, "reset")
        return self._reset_slots(slots, [seed] * len(slots), options)

    def seed(self, seed: int | Sequence[int] | None = None) -> list[list[int] | None]:
        """Seed environments and action spaces. The environments are reset.

        Args:
            seed: The seed of slot 0, which is incremented for each further slot, or one seed per
                slot. None for random seeds.
        """
        slots = self._idle(None, "seed")
        seeds = slot_seeds(seed, self.env_num)
        for space, slot_seed in zip(self.action_space, seeds, strict=True):
            space.seed(slot_seed)
        self._reset_slots(slots, seeds, None)
        return [[slot_seed] for slot_seed in seeds]  # type: ignore[list-item]

    def step(self, action: Any, id: EnvId = None) -> StepResult:  # noqa: A002
        """Step some slots, or all slots.

        Args:
            action: A sequence, array or tensor with one action per slot. An asynchronous vector
                accepts None to only receive steps in flight: those of the slots ``id``, or as
                defined by ``wait_num`` and ``timeout`` if ``id`` is None.
            id: One or several slots; None for all.

        Returns:
            Observations, rewards, terminated, truncated and infos of the slots ``id``, in this
            order, or of the finished slots if the vector is asynchronous. ``env_id`` in each info
            is the number of the slot.

        Raises:
            InvalidActionError: If the number of actions is wrong, or an action is not in the action
                space.
            AlreadyPendingCallError: If one of the slots is in flight.
            NoAsyncCallError: If there is nothing to receive.
        """
        if self.is_async:
            return self._step_some(action, id)
        if action is None:
            raise ValueError("action must not be None unless wait_num or timeout is set")
        slots = slot_numbers(_as_list(id), self.env_num)
        self._store_observations(slots)
        actions = self._batched(action, len(slots))
        if np.array_equal(slots, self._every_slot):
            return self._step_result(Batch(slots, *self._pool.step(actions)))
        self._pool.send(actions, slots)
        return self._step_result(self._pool.recv())

    def _step_some(self, action: Any, id: EnvId) -> StepResult:  # noqa: A002
        if action is not None:
            slots = self._idle(id, "step")
            self._store_observations(slots)
            self._pool.send(self._batched(action, len(slots)), slots)
            self._in_flight.update(dict.fromkeys(slots.tolist()))
        if not self._in_flight:
            raise NoAsyncCallError("step: no slot is in flight", "step")
        if action is None and id is not None:
            batch = self._pool.recv(slots=slot_numbers(_as_list(id), self.env_num))
        else:
            batch = self._recv_finished()
        for slot in batch.slots.tolist():
            del self._in_flight[slot]
        return self._step_result(batch)

    def _recv_finished(self) -> Batch:
        try:
            return self._pool.recv(min(self.wait_num, len(self._in_flight)), self.timeout)
        except ReceiveTimeoutError:
            return self._pool.recv(1)  # at least one, and all others that are done

    @property
    def waiting_id(self) -> list[int]:  # type: ignore[override]
        """Slots in flight (of an asynchronous vector)."""
        return list(self._in_flight)

    @property
    def ready_id(self) -> list[int]:  # type: ignore[override]
        """Slots that can be stepped or reset."""
        return [slot for slot in range(self.env_num) if slot not in self._in_flight]

    def get_env_attr(self, key: str, id: EnvId = None) -> list[Any]:  # noqa: A002
        """Get an attribute of each of these environments or its wrappers."""
        return self._pool.call(get_attribute, key, slots=self._idle(id, "get_env_attr"))

    def set_env_attr(self, key: str, value: Any, id: EnvId = None) -> None:  # noqa: A002
        """Set an attribute of each of these environments or its wrappers.

        Raises:
            AttributeError: If an environment with wrappers has the attribute in none of its layers.
        """
        self._pool.call(set_attribute, key, value, slots=self._idle(id, "set_env_attr"))

    @property
    def spec(self) -> list[Any]:
        """The spec of each environment."""
        return self.get_env_attr("spec")

    @property
    def reward_range(self) -> list[Any]:
        """The ``reward_range`` of each environment, which only older environments have."""
        return self.get_env_attr("reward_range")

    def render(self, **kwargs: Any) -> list[Any]:
        """Render each environment."""
        self._idle(None, "render")
        return self._pool.call("render", **kwargs)

    def close(self) -> None:
        """Close all environments and workers. A second call does nothing."""
        self.is_closed = True
        self._in_flight.clear()
        self.vector.close()
        self._pool.close()

    def _idle(self, env_id: EnvId, method: str) -> Slots:
        """Return the slots, after a check that none of them is in flight."""
        slots = slot_numbers(_as_list(env_id), self.env_num)
        for slot in slots.tolist():
            if slot in self._in_flight:
                raise AlreadyPendingCallError(
                    f"{method}: slot {slot} is in flight; the idle slots are {self.ready_id}",
                    "step",
                )
        return slots

    def _reset_slots(
        self, slots: Slots, seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> tuple[Array, Array]:
        self._pool.reset(slots, seeds, options)
        batch = self._pool.recv(slots=slots) if self._in_flight else self._pool.recv()
        infos = format_infos(batch.infos, len(slots), "list")
        return self._stacked(batch.observations, len(slots)), _objects(infos)

    def _batched(self, actions: Any, count: int) -> Any:
        """Convert Tianshou's actions to the pool's format."""
        if isinstance(actions, torch.Tensor):
            actions = actions.numpy(force=True)
        space: Space[Any] = self._pool.spaces.single_action
        if not isinstance(space, spaces.Dict | spaces.Tuple):
            return actions
        if len(actions) != count:
            raise InvalidActionError(f"got {len(actions)} actions for {count} slots")
        return batch_of(space, list(actions))

    def _store_observations(self, slots: Slots) -> None:
        """Store the current observations of these slots in case one of them crashes."""
        if self._pool.restarts:
            observations = self._stacked(self._pool.latest(slots), len(slots))
            self._previous.update(zip(slots.tolist(), observations, strict=True))

    def _step_result(self, batch: Batch) -> StepResult:
        slots, observations, rewards, terminated, truncated, raw = batch
        if not self._pool.copy:
            rewards, terminated, truncated = rewards.copy(), terminated.copy(), truncated.copy()
        stacked = self._stacked(observations, len(slots))
        infos = format_infos(raw, len(slots), "list")
        for row, (slot, info) in enumerate(zip(slots.tolist(), infos, strict=True)):
            info["env_id"] = slot
            if self._previous and info.get(CRASHED) is True and not terminated[row]:
                # Replace the first observation of the next episode.
                stacked[row] = self._previous[slot]
        return stacked, rewards, terminated, truncated, _objects(infos)

    def _stacked(self, observations: Any, count: int) -> Array:
        """Return an array of observations; nested observations become an array of objects."""
        if isinstance(observations, np.ndarray):
            return observations if self._pool.copy else observations.copy()
        copied = observations if self._pool.copy else deepcopy(observations)
        return _objects(list(self._rows(copied, count)))

    def _rows(self, observations: Any, count: int) -> Iterator[Any]:
        arrays, objects = batch_leaves(self._layout, observations)
        for row in range(count):
            columns, lists = iter(arrays), iter(objects)
            yield structured(
                self._layout,
                lambda part, columns=columns, lists=lists, row=row: (  # type: ignore[misc]
                    next(columns) if isinstance(part, Leaf) else next(lists)
                )[row],
            )


def _as_list(env_id: EnvId) -> Any:
    return [env_id] if np.isscalar(env_id) else env_id


def _objects(items: list[Any]) -> Array:
    """Return an array of objects."""
    return np.fromiter(items, np.object_, len(items))
