"""The Tianshou frontend: any vector as what Tianshou's collectors and trainers step.

.. code-block:: python

    from tianshou.data import Collector, VectorReplayBuffer
    from shoal.tianshou import make                          # was: from tianshou.env import ...

    envs = make("CartPole-v1", num_envs=64)                  # was: SubprocVectorEnv([...] * 64)
    collector = Collector(policy, envs, VectorReplayBuffer(20_000, 64))

What it gives is what Tianshou's own ``DummyVectorEnv`` gives from the same seeds and actions, bit
for bit, but for rewards, which are float64 whatever an environment says.
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
    raise MissingExtraError(
        'tianshou is not installed, run `pip install "shoal[tianshou]"`'
    ) from error

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
    """Make a vector of environments for Tianshou.

    Args:
        what: As for :func:`shoal.make`: an id, a kernel, a function, a list of functions.
        num_envs: How many; for a list it follows from the list.
        wait_num: As for :class:`ShoalVectorEnv`.
        timeout: As for :class:`ShoalVectorEnv`.
        **options: As for :func:`shoal.make`. The autoreset mode is Tianshou's, which resets
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
        # Who is to look at the clock, or at who comes first, must not be stepping meanwhile.
        options.setdefault("batch_size", wait_num or 1)
    vector = make_vector(what, num_envs, autoreset_mode=AutoresetMode.DISABLED, **options)
    try:
        return ShoalVectorEnv(vector, wait_num=wait_num, timeout=timeout)
    except BaseException:
        vector.close()
        raise


class ShoalVectorEnv(BaseVectorEnv):
    """A vector behind Tianshou's interface, whatever steps its environments.

    Slots are stepped and reset by their numbers. Whoever steps resets what has ended, as Tianshou's
    collectors do. Closing this one closes the vector.

    Args:
        envs: Shoal's, as :func:`shoal.make` makes it, or any other of Gymnasium's interface, in
            wrappers or not. Only a bare one of Shoal's steps some of its slots; collecting by
            ``n_episode`` needs that, collecting by ``n_step`` does not. Its autoreset mode is
            DISABLED, or NEXT_STEP, since an explicit reset comes before the automatic one.
        wait_num: For asynchronous collecting: with how many slots ``step`` returns, while the
            others are still being stepped. (Of Tianshou 2.0, ``AsyncCollector`` works with policies
            that have a state alone, whatever the vector.)
        timeout: For asynchronous collecting: after how many seconds ``step`` returns with what is
            done, one slot at least.

    Raises:
        ValueError: The vector resets a slot in the step in which its episode ends: what was
            observed at the end would not be where Tianshou looks for it.
        TypeError: Observations are tuples, which Tianshou has no buffer for.

    Example:
        >>> import shoal
        >>> envs = ShoalVectorEnv(shoal.make("CartPole-v1", num_envs=2))
        >>> envs.seed(1)
        [[1], [2]]
        >>> len(envs), envs.is_async
        (2, False)
        >>> envs.close()
    """

    # The base class sends some names to workers, of which there are none here.
    __getattribute__ = object.__getattribute__

    def __init__(  # no super().__init__(): it makes workers
        self,
        envs: gymnasium.vector.VectorEnv[Any, Any, Any],
        *,
        wait_num: int | None = None,
        timeout: float | None = None,
    ) -> None:
        if not isinstance(envs, gymnasium.vector.VectorEnv):
            raise TypeError(f"expected a gymnasium.vector.VectorEnv, got {type(envs).__name__}")
        self.vector = envs  # it ends its pool's life with its own
        self._pool: Pool = envs.pool if isinstance(envs, VectorEnv) else VectorEnvPool(envs)
        self.env_num = count = self._pool.num_envs
        self.wait_num = count if wait_num is None else index(wait_num)
        self.timeout = timeout
        self.is_async = self.wait_num != count or timeout is not None
        self.is_closed = False
        self._check()
        single = self._pool.spaces
        self.observation_space = [single.single_observation] * count
        # One for each slot, since collectors sample from them, and `seed` seeds each by its own.
        self.action_space = [deepcopy(single.single_action) for _ in range(count)]
        self.metadata = [self._pool.metadata] * count
        self._layout = Layout.of(single.single_observation)
        self._every_slot = np.arange(count)
        self._stepping: dict[int, None] = {}  # slots in flight, in the order of sending
        self._before: dict[int, Any] = {}  # what they have last shown, where a crash could lose it

    def _check(self) -> None:
        if not 1 <= self.wait_num <= self.env_num:
            raise ValueError(
                f"wait_num must be between 1 and {self.env_num}, the number of environments, got "
                f"{self.wait_num}"
            )
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be a positive number, got {self.timeout}")
        if self._pool.autoreset_mode is AutoresetMode.SAME_STEP:
            raise ValueError(
                "the vector resets a slot in the step in which its episode ends, but Tianshou does "
                "that itself: make it with autoreset_mode=AutoresetMode.DISABLED"
            )
        space = self._pool.spaces.single_observation
        if isinstance(space, spaces.Tuple):
            raise TypeError(f"Tianshou takes arrays or dicts as observations, not those of {space}")

    def __len__(self) -> int:
        return self.env_num

    def reset(  # type: ignore[override]
        self,
        env_id: EnvId = None,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Array, Array]:
        """Begin new episodes in these slots, all of them by default.

        A reset of all slots gives up the steps that are under way.

        Args:
            env_id: A number or several.
            seed: Given to each of these environments as it is, which is what Tianshou does. To
                seed each by its own use :meth:`seed`.
            options: Given to each of these environments.

        Returns:
            The observations and infos of these slots, in the order of ``env_id``.
        """
        if env_id is None:
            self._pool.drop()
            self._stepping.clear()
        slots = self._idle(env_id, "reset")
        return self._begun(slots, [seed] * len(slots), options)

    def seed(self, seed: int | Sequence[int] | None = None) -> list[list[int] | None]:
        """Seed environments and action spaces; environments are reset by that.

        Args:
            seed: One number, from which the slots count up, or one for each slot; None for chance.
        """
        slots = self._idle(None, "seed")
        seeds = slot_seeds(seed, self.env_num)
        for space, each in zip(self.action_space, seeds, strict=True):
            space.seed(each)
        self._begun(slots, seeds, None)
        return [[each] for each in seeds]  # type: ignore[list-item]

    def step(self, action: Any, id: EnvId = None) -> StepResult:  # noqa: A002
        """Step these slots, all of them by default, with one action for each.

        Args:
            action: A sequence, array or tensor with an action for each of these slots. None fetches
                steps that are under way, if the vector is asynchronous: those of ``id``, which are
                waited for, or as ``wait_num`` and ``timeout`` say where no slots are named.
            id: A number or several.

        Returns:
            Observations, rewards, terminated, truncated and infos. They are those of the slots of
            ``id``, in this order; of an asynchronous vector, those of the slots that are done.
            ``env_id`` in each info says which slot it is.

        Raises:
            InvalidActionError: There are too few or too many, or one is not of the action space.
            AlreadyPendingCallError: One of the slots is being stepped.
            NoAsyncCallError: None of the slots is, from which something could be fetched.
        """
        if self.is_async:
            return self._step_some(action, id)
        if action is None:
            raise ValueError("action is None: only a vector with wait_num or timeout takes that")
        slots = slot_numbers(_several(id), self.env_num)
        self._remember(slots)
        actions = self._batched(action, len(slots))
        if np.array_equal(slots, self._every_slot):
            return self._told(Batch(slots, *self._pool.step(actions)))
        self._pool.send(actions, slots)
        return self._told(self._pool.recv())

    def _step_some(self, action: Any, id: EnvId) -> StepResult:  # noqa: A002
        if action is not None:
            slots = self._idle(id, "step")
            self._remember(slots)
            self._pool.send(self._batched(action, len(slots)), slots)
            self._stepping.update(dict.fromkeys(slots.tolist()))
        if not self._stepping:
            raise NoAsyncCallError("step: nothing is under way that could be fetched", "step")
        if action is None and id is not None:
            batch = self._pool.recv(slots=slot_numbers(_several(id), self.env_num))
        else:
            batch = self._first_come()
        for slot in batch.slots.tolist():
            del self._stepping[slot]
        return self._told(batch)

    def _first_come(self) -> Batch:
        try:
            return self._pool.recv(min(self.wait_num, len(self._stepping)), self.timeout)
        except ReceiveTimeoutError:
            return self._pool.recv(1)  # and whatever else is done

    @property
    def waiting_id(self) -> list[int]:  # type: ignore[override]
        """The slots that are being stepped, of an asynchronous vector."""
        return list(self._stepping)

    @property
    def ready_id(self) -> list[int]:  # type: ignore[override]
        """The slots that can be stepped or reset."""
        return [slot for slot in range(self.env_num) if slot not in self._stepping]

    def get_env_attr(self, key: str, id: EnvId = None) -> list[Any]:  # noqa: A002
        """An attribute of each of these environments, or of a wrapper around it."""
        return self._pool.call(get_attribute, key, slots=self._idle(id, "get_env_attr"))

    def set_env_attr(self, key: str, value: Any, id: EnvId = None) -> None:  # noqa: A002
        """Set an attribute of each of these environments where it is: there or in a wrapper.

        Raises:
            AttributeError: It is in neither, and there is a wrapper, in which it would be lost.
        """
        self._pool.call(set_attribute, key, value, slots=self._idle(id, "set_env_attr"))

    @property
    def spec(self) -> list[Any]:
        """The spec of each environment."""
        return self.get_env_attr("spec")

    @property
    def reward_range(self) -> list[Any]:
        """The attribute of this name of each environment, which older ones have."""
        return self.get_env_attr("reward_range")

    def render(self, **kwargs: Any) -> list[Any]:
        """Render each environment."""
        self._idle(None, "render")
        return self._pool.call("render", **kwargs)

    def close(self) -> None:
        """Close every environment and end the workers; a second call does nothing."""
        self.is_closed = True
        self._stepping.clear()
        self.vector.close()
        self._pool.close()

    def _idle(self, env_id: EnvId, doing: str) -> Slots:
        """These slots, none of which may be under way."""
        slots = slot_numbers(_several(env_id), self.env_num)
        for slot in slots.tolist():
            if slot in self._stepping:
                raise AlreadyPendingCallError(
                    f"{doing}: slot {slot} is being stepped; ready are {self.ready_id}", "step"
                )
        return slots

    def _begun(
        self, slots: Slots, seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> tuple[Array, Array]:
        self._pool.reset(slots, seeds, options)
        batch = self._pool.recv(slots=slots) if self._stepping else self._pool.recv()
        infos = format_infos(batch.infos, len(slots), "list")
        return self._stacked(batch.observations, len(slots)), _objects(infos)

    def _batched(self, actions: Any, count: int) -> Any:
        """One action for each slot, as Tianshou has it, in the form that pools take."""
        if isinstance(actions, torch.Tensor):
            actions = actions.numpy(force=True)
        space: Space[Any] = self._pool.spaces.single_action
        if not isinstance(space, spaces.Dict | spaces.Tuple):
            return actions
        if len(actions) != count:
            raise InvalidActionError(f"got {len(actions)} actions for {count} slots")
        return batch_of(space, list(actions))

    def _remember(self, slots: Slots) -> None:
        """Take note of what these slots show before they are stepped."""
        if self._pool.restarts:
            shown = self._stacked(self._pool.latest(slots), len(slots))
            self._before.update(zip(slots.tolist(), shown, strict=True))

    def _told(self, batch: Batch) -> StepResult:
        slots, observations, rewards, terminated, truncated, raw = batch
        if not self._pool.copy:
            rewards, terminated, truncated = rewards.copy(), terminated.copy(), truncated.copy()
        shown = self._stacked(observations, len(slots))
        infos = format_infos(raw, len(slots), "list")
        for row, (slot, info) in enumerate(zip(slots.tolist(), infos, strict=True)):
            info["env_id"] = slot
            if self._before and info.get(CRASHED) is True and not terminated[row]:
                shown[row] = self._before[slot]  # not the first observation of another episode
        return shown, rewards, terminated, truncated, _objects(infos)

    def _stacked(self, observations: Any, count: int) -> Array:
        """A batch as Tianshou stacks one: what is no array becomes an array of objects."""
        if isinstance(observations, np.ndarray):
            return observations if self._pool.copy else observations.copy()
        kept = observations if self._pool.copy else deepcopy(observations)
        return _objects(list(self._rows(kept, count)))

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


def _several(env_id: EnvId) -> Any:
    return [env_id] if np.isscalar(env_id) else env_id


def _objects(items: list[Any]) -> Array:
    """An array with these objects as they are."""
    return np.fromiter(items, np.object_, len(items))
