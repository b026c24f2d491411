"""Any vector of Gymnasium's interface as a pool, for other frontends to be put on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import gymnasium.vector
import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import iterate

from shoal import _native
from shoal._memory import VectorColumns
from shoal._spaces import Layout, VectorSpaces
from shoal._types import EPISODE, Event, RawInfos, Results, Work
from shoal.errors import ResetMaskError
from shoal.pools._base import (
    Batch,
    SlotChoice,
    WorkerState,
    caller_state,
    checked_seeds,
    slot_numbers,
)
from shoal.pools._env_access import (
    call_method,
    get_attribute,
    has_attribute,
    is_wrapped,
    set_attribute,
)
from shoal.pools._environments import Called
from shoal.vector._infos import infos_as_list
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector.wrappers._base import autoreset_mode_of, batch_of

__all__ = ["VectorEnvPool"]

_ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)


class VectorEnvPool:
    """The contract over a vector that steps all of its slots at once.

    Slots can be reset by themselves where the vector knows ``options["reset_mask"]``; they cannot
    be stepped by themselves.

    Args:
        vector: The vector, wrapped or not. The pool closes it.
    """

    envs = None
    copy = False  # some vectors return the same arrays in every step

    def __init__(self, vector: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        self.vector = vector
        self.num_envs = vector.num_envs
        self.autoreset_mode = autoreset_mode_of(vector)
        self.metadata = vector.metadata
        self.render_mode = vector.render_mode
        self.spaces = VectorSpaces(
            vector.single_observation_space,
            vector.observation_space,
            vector.single_action_space,
            vector.action_space,
        )
        base = vector.unwrapped
        self._is_ours = isinstance(base, VectorEnv)
        self.restarts = isinstance(base, VectorEnv) and base.pool.restarts
        # Others check actions while they step, if at all.
        layout = Layout.of(self.spaces.single_action, ordered_like=self.spaces.action)
        columns = VectorColumns(layout, layout, self.num_envs, 0)
        self._intake = _native.ActionIntake(
            layout.tree, columns.actions(), columns.state(), _native.Autoreset.DISABLED
        )
        self._actions: Any = None
        self._is_stepping = False
        self._resets: list[Work] = []
        self._observations: Any = None
        self._closed = False

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        return self.num_envs if self._is_stepping else sum(len(work[0]) for work in self._resets)

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        self._check_idle("reset")
        chosen = slot_numbers(slots, self.num_envs)
        self._resets.append((chosen, checked_seeds(seeds, len(chosen)), options))

    def begin_step(self, actions: Any) -> None:
        """Check actions for every slot; they are stepped in ``end_step``."""
        self._check_idle("step")
        if self._resets:
            raise AlreadyPendingCallError("step: resets are in flight", "recv")
        self._intake.accept(actions, None)
        self._actions = _as_arrays(self.spaces.single_action, actions)
        self._is_stepping = True

    def end_step(self, timeout: float | None = None) -> Results:  # noqa: ARG002
        """Step every slot, with the actions that ``begin_step`` was given."""
        if not self._is_stepping:
            raise NoAsyncCallError("no step of all slots is in flight", "step")
        self._is_stepping = False
        observations, rewards, terminated, truncated, infos = self.vector.step(self._actions)
        self._observations = observations
        ended = np.logical_or(terminated, truncated)
        raw = self._raw(infos, ended if self.autoreset_mode is AutoresetMode.SAME_STEP else None)
        return observations, np.asarray(rewards, np.float64), terminated, truncated, raw

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        self.begin_step(actions)
        return self.end_step()

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Take actions for every slot."""
        if len(slot_numbers(slots, self.num_envs)) != self.num_envs:
            raise ValueError("this vector steps all of its slots, not some of them")
        self.begin_step(actions)

    def recv(
        self,
        min_slots: int | None = None,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
        *,
        max_slots: int | None = None,  # noqa: ARG002
        slots: SlotChoice = None,  # noqa: ARG002
    ) -> Batch:
        """Do all that is queued, and return it."""
        if self._is_stepping:
            return Batch(np.arange(self.num_envs), *self.end_step())
        if not self._resets:
            raise NoAsyncCallError("recv: no reset or step is in flight", "recv")
        work, self._resets = self._resets, []
        events: list[Event] = []
        if self._observations is None and len(work) > 1:
            # The first reset is one of all slots, whatever becomes of some of them right after.
            self._reset(np.arange(self.num_envs), [None] * self.num_envs, None)
        for slots_of_one, seeds, options in work:
            raw = self._reset(slots_of_one, list(seeds or ()), options)
            events += raw[0] if raw is not None else []
        chosen = np.concatenate([slots_of_one for slots_of_one, _, _ in work])
        rows = {int(slot): row for row, slot in enumerate(chosen)}
        told = [(rows[slot], info) for slot, info in events if slot in rows]
        nothing = np.zeros(len(chosen), np.bool_)
        return Batch(
            chosen,
            self.latest(chosen),
            np.zeros(len(chosen)),
            nothing,
            nothing.copy(),
            (told, None) if told else None,
        )

    def _reset(
        self, slots: npt.NDArray[np.int64], seeds: list[int | None], options: dict[str, Any] | None
    ) -> RawInfos | None:
        every: list[int | None] = [None] * self.num_envs
        for slot, seed in zip(slots.tolist(), seeds, strict=True):
            every[slot] = seed
        if len(slots) == self.num_envs:
            self._observations, infos = self.vector.reset(seed=_as_given(every), options=options)
            return self._raw(infos, None)
        mask = np.zeros(self.num_envs, np.bool_)
        mask[slots] = True
        options = {**(options or {}), "reset_mask": mask}
        before = None if self._knows_masks() else self.latest()
        self._observations, infos = self.vector.reset(seed=_as_given(every), options=options)
        if before is not None:
            self._check_untouched(before, np.flatnonzero(~mask).tolist())
        return self._raw(infos, None)

    def _knows_masks(self) -> bool:
        known = (gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv)
        return self._is_ours or isinstance(self.vector.unwrapped, known)

    def _check_untouched(self, before: Any, slots: list[int]) -> None:
        old = list(iterate(self.spaces.observation, before))
        new = list(iterate(self.spaces.observation, self._observations))
        for slot in slots:
            if not _same(old[slot], new[slot]):
                raise ResetMaskError(
                    f"{type(self.vector.unwrapped).__name__} has reset slot {slot} as well, which "
                    "options['reset_mask'] leaves out: its slots cannot be reset one by one. Make "
                    "it with AutoresetMode.SAME_STEP"
                )

    def _raw(self, infos: Any, ended: npt.NDArray[np.bool_] | None) -> RawInfos | None:
        """Infos as pools give them; ``ended`` says which slots were reset in the same step."""
        events: list[Event] = []
        for slot, info in enumerate(infos_as_list(infos, self.num_envs)):
            if ended is not None and ended[slot]:
                final_info = info.pop("final_info", {})
                if EPISODE in info:  # the one that has ended, which a wrapper tells of
                    final_info = {**final_info, EPISODE: info.pop(EPISODE)}
                older = info.pop("final_observation", None)  # before Gymnasium 1.0
                final = {"final_obs": info.pop("final_obs", older), "final_info": final_info}
                events.append((slot, final))
            if info:
                events.append((slot, info))
        return (events, None) if events else None

    def drop(self) -> None:
        """Forget all that is in flight, before it is done."""
        self._is_stepping = False
        self._resets.clear()

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots, as a batch, without stepping them."""
        chosen = slot_numbers(slots, self.num_envs).tolist()
        if chosen == list(range(self.num_envs)):
            return deepcopy(self._observations)
        rows = list(iterate(self.spaces.observation, self._observations))
        return batch_of(self.spaces.single_observation, [rows[slot] for slot in chosen])

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach each environment, as far as the vector can.

        Raises:
            ValueError: A method of some environments is to be called, but the vector calls all.
        """
        self._check_idle("call")
        base = self.vector.unwrapped
        if isinstance(base, VectorEnv):  # in wrappers
            return base.pool.call(what, *args, slots=slots, **kwargs)
        chosen = slot_numbers(slots, self.num_envs).tolist()
        if what is set_attribute:
            name, value, *_ = args
            self._set(name, value, chosen)
            return [None] * len(chosen)
        results = self._all(what, args, kwargs, partly=len(chosen) < self.num_envs)
        return [results[slot] for slot in chosen]

    def _all(
        self, what: Called, args: tuple[Any, ...], kwargs: dict[str, Any], partly: bool
    ) -> Sequence[Any]:
        vector: Any = self.vector
        results: Sequence[Any]
        if what == "render":
            results = vector.render()
        elif what is get_attribute:
            results = self._get(args[0])
        elif what is has_attribute:
            results = [self._has(args[0])] * self.num_envs
        elif what is is_wrapped:
            results = [False] * self.num_envs  # it cannot be asked, and shows no wrappers
        elif partly:
            raise ValueError(f"{type(vector).__name__} calls methods of all its environments only")
        elif what is call_method:
            name, method_args, method_kwargs = args
            results = vector.call(name, *method_args, **method_kwargs)
        elif isinstance(what, str):
            results = vector.call(what, *args, **kwargs)
        else:
            raise TypeError(f"{type(vector).__name__} can be asked by name only")
        return results

    def _get(self, name: str) -> Sequence[Any]:
        # A vector need not be made of environments, and then has no such method.
        if name == "render_mode" or not hasattr(self.vector, "get_attr"):
            return [getattr(self.vector, name)] * self.num_envs
        values: Sequence[Any] = self.vector.get_attr(name)
        return values

    def _set(self, name: str, value: Any, slots: list[int]) -> None:
        values = list(self._get(name))
        for slot in slots:
            values[slot] = value
        self.vector.set_attr(name, values)  # type: ignore[attr-defined]

    def _has(self, name: str) -> bool:
        try:
            self._get(name)
        except AttributeError:
            return False
        return True

    def worker_states(self) -> list[WorkerState]:
        """Those of the vector's pool if it has one; else nobody knows but the vector."""
        pool = getattr(self.vector.unwrapped, "pool", None)
        return [caller_state(range(self.num_envs))] if pool is None else pool.worker_states()

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:  # noqa: ARG002
        """Close the vector; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self.drop()
            self.vector.close()

    def abandon(self) -> None:
        """Leave the vector to whoever has made it."""

    def _check_idle(self, doing: str) -> None:
        if self._closed:
            raise ClosedEnvironmentError(f"{doing}: the vector environment is closed")
        if self._is_stepping:
            raise AlreadyPendingCallError(f"{doing}: a step is in flight", "recv")


def _as_given(seeds: list[int | None]) -> Any:
    """Seeds as a vector takes them; some take only one, from which the others follow."""
    first = seeds[0]
    if first is None:
        return None if seeds == [None] * len(seeds) else seeds
    return first if seeds == list(range(first, first + len(seeds))) else seeds


def _as_arrays(space: Space[Any], actions: Any) -> Any:
    """Actions that were accepted, with an array for each part that can be one."""
    if isinstance(space, spaces.Dict):
        return {key: _as_arrays(part, actions[key]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(map(_as_arrays, space.spaces, actions))
    return np.asarray(actions) if isinstance(space, _ARRAYS) else actions


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping):
        return all(_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return all(map(_same, one, other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    return bool(one == other)
