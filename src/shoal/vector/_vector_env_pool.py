"""Any ``gymnasium.vector.VectorEnv`` as a pool, on which other frontends can be built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import gymnasium.vector
import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
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
    check_open,
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
    """A pool around a vector that steps all of its slots at once.

    Slots can be reset separately if the vector supports ``options["reset_mask"]``; they cannot be
    stepped separately.

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
        # Other vectors check actions only while they step, if at all.
        layout = Layout.of(self.spaces.single_action, ordered_like=self.spaces.action)
        columns = VectorColumns(layout, layout, self.num_envs, 0)
        self._intake = _native.ActionIntake(
            layout.tree, columns.actions(), columns.state(), _native.Autoreset.DISABLED
        )
        self._actions: Any = None
        self._ledger = _native.SlotLedger(self.num_envs)
        self._resets: list[Work] = []  # of the slots in flight
        self._observations: Any = None
        self._closed = False

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        return self._ledger.in_flight

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        check_open(self._closed, "reset")
        chosen = slot_numbers(slots, self.num_envs)
        self._ledger.check_idle(chosen)
        self._resets.append((chosen, checked_seeds(seeds, len(chosen)), options))
        self._ledger.mark_in_flight(chosen)

    def begin_step(self, actions: Any) -> None:
        """Check actions for every slot; they are stepped in ``end_step``."""
        check_open(self._closed, "step")
        self._ledger.check_idle(None)
        self._intake.accept(actions, None)
        self._actions = _as_arrays(self.spaces.single_action, actions)
        self._ledger.begin_round()

    def end_step(self, timeout: float | None = None) -> Results:  # noqa: ARG002
        """Step every slot with the actions of ``begin_step``."""
        self._ledger.check_round()
        self._ledger.end_round()
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
        """Check actions for every slot; they are stepped in ``recv``."""
        if len(slot_numbers(slots, self.num_envs)) != self.num_envs:
            raise ValueError("this vector can only step all of its slots")
        self.begin_step(actions)

    def recv(
        self,
        min_slots: int | None = None,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
        *,
        max_slots: int | None = None,  # noqa: ARG002
        slots: SlotChoice = None,  # noqa: ARG002
    ) -> Batch:
        """Execute all queued work, and return its results."""
        if self._ledger.is_in_round:
            return Batch(np.arange(self.num_envs), *self.end_step())
        self._ledger.wanted(None, None, None)  # raises if nothing is in flight
        work, self._resets = self._resets, []
        self._ledger.clear_all()
        events: list[Event] = []
        if self._observations is None and len(work) > 1:
            # The first reset must be one of all slots.
            self._reset(np.arange(self.num_envs), [None] * self.num_envs, None)
        for slots_of_one, seeds, options in work:
            raw = self._reset(slots_of_one, list(seeds or ()), options)
            events += raw[0] if raw is not None else []
        chosen = np.concatenate([slots_of_one for slots_of_one, _, _ in work])
        rows = {int(slot): row for row, slot in enumerate(chosen)}
        row_events = [(rows[slot], info) for slot, info in events if slot in rows]
        nothing = np.zeros(len(chosen), np.bool_)
        return Batch(
            chosen,
            self.latest(chosen),
            np.zeros(len(chosen)),
            nothing,
            nothing.copy(),
            (row_events, None) if row_events else None,
        )

    def _reset(
        self, slots: npt.NDArray[np.int64], seeds: list[int | None], options: dict[str, Any] | None
    ) -> RawInfos | None:
        every: list[int | None] = [None] * self.num_envs
        for slot, seed in zip(slots.tolist(), seeds, strict=True):
            every[slot] = seed
        if len(slots) == self.num_envs:
            self._observations, infos = self.vector.reset(
                seed=_seed_argument(every), options=options
            )
            return self._raw(infos, None)
        mask = np.zeros(self.num_envs, np.bool_)
        mask[slots] = True
        options = {**(options or {}), "reset_mask": mask}
        before = None if self._supports_masks() else self.latest()
        self._observations, infos = self.vector.reset(seed=_seed_argument(every), options=options)
        if before is not None:
            self._check_untouched(before, np.flatnonzero(~mask).tolist())
        return self._raw(infos, None)

    def _supports_masks(self) -> bool:
        known = (gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv)
        return self._is_ours or isinstance(self.vector.unwrapped, known)

    def _check_untouched(self, before: Any, slots: list[int]) -> None:
        old = list(iterate(self.spaces.observation, before))
        new = list(iterate(self.spaces.observation, self._observations))
        for slot in slots:
            if not _same(old[slot], new[slot]):
                raise ResetMaskError(
                    f"{type(self.vector.unwrapped).__name__} has also reset slot {slot}, which "
                    "options['reset_mask'] does not select: its slots cannot be reset separately. "
                    "Make it with AutoresetMode.SAME_STEP"
                )

    def _raw(self, infos: Any, ended: npt.NDArray[np.bool_] | None) -> RawInfos | None:
        """Return raw infos; ``ended`` marks the slots that were reset in the same step."""
        events: list[Event] = []
        for slot, info in enumerate(infos_as_list(infos, self.num_envs)):
            if ended is not None and ended[slot]:
                final_info = info.pop("final_info", {})
                if EPISODE in info:  # added by a wrapper for the episode that has ended
                    final_info = {**final_info, EPISODE: info.pop(EPISODE)}
                older = info.pop("final_observation", None)  # before Gymnasium 1.0
                final = {"final_obs": info.pop("final_obs", older), "final_info": final_info}
                events.append((slot, final))
            if info:
                events.append((slot, info))
        return (events, None) if events else None

    def drop(self) -> None:
        """Discard all queued work."""
        self._ledger.clear_all()
        self._resets.clear()

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots, as a batch, without a step."""
        chosen = slot_numbers(slots, self.num_envs).tolist()
        if chosen == list(range(self.num_envs)):
            return deepcopy(self._observations)
        rows = list(iterate(self.spaces.observation, self._observations))
        return batch_of(self.spaces.single_observation, [rows[slot] for slot in chosen])

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call a method of each environment or read an attribute, if the vector supports it.

        Raises:
            ValueError: Only some environments are to be called, but the vector can only call all.
        """
        check_open(self._closed, "call")
        if self._ledger.is_in_round:
            self._ledger.check_idle(None)
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
            results = [False] * self.num_envs  # the vector hides the wrappers of its environments
        elif partly:
            raise ValueError(f"{type(vector).__name__} can only call all of its environments")
        elif what is call_method:
            name, method_args, method_kwargs = args
            results = vector.call(name, *method_args, **method_kwargs)
        elif isinstance(what, str):
            results = vector.call(what, *args, **kwargs)
        else:
            raise TypeError(f"{type(vector).__name__} can only call methods by name")
        return results

    def _get(self, name: str) -> Sequence[Any]:
        # A vector that is not made of environments has no `get_attr`.
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
        """Return the workers of the vector's pool; the caller if the vector has no pool."""
        pool = getattr(self.vector.unwrapped, "pool", None)
        return [caller_state(range(self.num_envs))] if pool is None else pool.worker_states()

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:  # noqa: ARG002
        """Close the vector; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self.drop()
            self.vector.close()

    def abandon(self) -> None:
        """Do nothing: the vector belongs to the user."""


def _seed_argument(seeds: list[int | None]) -> Any:
    """Return the argument of ``reset``: one integer if the others count up from it, else a list."""
    first = seeds[0]
    if first is None:
        return None if seeds == [None] * len(seeds) else seeds
    return first if seeds == list(range(first, first + len(seeds))) else seeds


def _as_arrays(space: Space[Any], actions: Any) -> Any:
    """Convert the parts of actions to arrays, where their space has arrays."""
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
