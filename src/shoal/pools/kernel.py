"""The pool of kernels: native environments on threads that need no GIL."""

from __future__ import annotations

import warnings
import weakref
from collections import deque
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from shoal import _native
from shoal.errors import ReceiveTimeoutError
from shoal.kernels.definition import Kernel
from shoal.memory import VectorColumns
from shoal.pools.base import Batch, SlotChoice, checked_seeds, slot_numbers
from shoal.pools.environments import Called, naming_slot
from shoal.pools.kernel_slot import KernelSlot
from shoal.pools.shares import available_cores
from shoal.spaces import VectorSpaces
from shoal.types import ColumnInfos, Finals, Results

__all__ = ["KernelPool"]

# As in the inline pool: a view stays valid until the batch after next.
_BANKS = 3

_PATIENCE = 10.0
"""Seconds that ``close`` waits for a thread that is inside a kernel."""


class KernelPool:
    """Steps slots of a kernel, in chunks that the caller and its threads share.

    Work that takes less than about 20 microseconds stays with the caller; the threads are started
    when there is more for the first time.

    Args:
        kernel: What the slots are.
        num_envs: How many.
        autoreset_mode: What happens at the end of an episode.
        copy: Whether batches are new arrays, or views that are valid until the batch after next.
        statistics: Whether to report return, length and time of each episode that ends.
        counter_based: Whether slots draw from a counter-based generator instead of NumPy's PCG64.
        workers: How many threads besides the caller; None for as many as there are other cores.
        cores: To which cores the threads are bound, one after the other; none by default.
    """

    restarts = False
    envs = None

    def __init__(
        self,
        kernel: Kernel,
        num_envs: int,
        *,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        statistics: bool = False,
        counter_based: bool = False,
        workers: int | None = None,
        cores: Sequence[int] = (),
    ) -> None:
        self.kernel = kernel
        self.num_envs = num_envs
        self.autoreset_mode = autoreset_mode
        self.metadata = dict(kernel.metadata)
        self.render_mode = kernel.render_mode
        self.copy = copy
        self.workers = max(0, available_cores() - 1) if workers is None else workers
        self.cores = tuple(cores)
        self._counter_based, self._statistics = counter_based, statistics
        self.spaces = VectorSpaces(
            kernel.observation_space,
            batch_space(kernel.observation_space, num_envs),
            kernel.action_space,
            batch_space(kernel.action_space, num_envs),
        )
        self._attributes: dict[int, dict[str, Any]] = {}
        self._prepare()

    def _prepare(self) -> None:
        observations, actions, infos = self.kernel.layouts()
        banks = 0 if self.copy else _BANKS
        columns = VectorColumns(observations, actions, self.num_envs, banks)
        state = columns.state()
        mode = getattr(_native.Autoreset, self.autoreset_mode.name)
        self._intake = _native.ActionIntake(
            actions.tree, columns.actions(), state, mode, casts=True
        )
        self._runner = _native.KernelRunner(
            self.kernel.native,
            observations.tree,
            infos.tree,
            self._intake,
            state,
            mode=mode,
            statistics=self._statistics,
            check_nan=self.kernel.check_nan,
            max_episode_steps=self.kernel.max_episode_steps or 0,
            counter_based=self._counter_based,
            parameters=list(self.kernel.values.values()),
            workers=self.workers,
            cores=list(self.cores),
            may_spin=available_cores() > self.workers,
        )
        filled = (columns.bank(number) for number in range(banks))
        self._banks: deque[_native.Bank | None] = deque(filled if banks else [None])
        self._sent: list[npt.NDArray[np.int64]] = []  # in flight, in the order of sending
        self._flying = np.zeros(self.num_envs, np.bool_)
        self._closed = False
        # Threads must not be at work any more when the interpreter ends.
        self._stop = weakref.finalize(self, _stopped, self._runner)

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        return sum(map(len, self._sent))

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        self._check_open("reset")
        chosen = slot_numbers(slots, self.num_envs)
        given = checked_seeds(seeds, len(chosen))
        self._check_idle(chosen)
        numbers = self.kernel.read_options(options or {}, self.kernel.options)
        self._runner.send_reset(chosen, given, numbers)
        self._fly(chosen)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and begin to step them."""
        self._check_open("send")
        chosen = slot_numbers(slots, self.num_envs)
        self._check_idle(chosen)
        self._runner.refuse_unbegun(chosen)
        self._intake.accept(actions, chosen)
        self._runner.send(chosen)
        self._fly(chosen)

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots that are in flight, first come, first served.

        All of those that are in flight come in the order in which they were sent; the chosen slots
        in the order of their choice.
        """
        self._check_open("recv")
        if not self._sent:
            raise NoAsyncCallError("recv: no reset or step is in flight", "recv")
        waiting = self.in_flight
        if slots is not None:
            wanted = slot_numbers(slots, self.num_envs)
            missing = wanted[~self._flying[wanted]]
            if missing.size:
                raise NoAsyncCallError(f"recv: slot {missing[0]} is not in flight", "recv")
            batch = self._receive(wanted, 0, 0, timeout)
        elif min_slots is None:
            batch = self._receive(np.concatenate(self._sent), 0, 0, timeout)
        else:
            count = index(min_slots)
            if not 1 <= count <= waiting:
                raise ValueError(f"min_slots is {count}, but {waiting} slots are in flight")
            most = waiting if max_slots is None else max(count, index(max_slots))
            batch = self._receive(None, count, most, timeout)
        return batch

    def _receive(
        self, wanted: npt.NDArray[np.int64] | None, least: int, most: int, timeout: float | None
    ) -> Batch:
        seconds = -1.0 if timeout is None else max(0.0, timeout)
        try:
            found = self._runner.receive(wanted, least, most, seconds, self._banks[0])
        except BaseException:
            # What has failed is in flight no more; what was interrupted still is.
            left = self._runner.slots_in_flight()
            self._land(None)
            if len(left):
                self._fly(left)
            raise
        if found is None:
            raise ReceiveTimeoutError(f"slots were not done within {timeout} seconds")
        self._banks.rotate(-1)
        slots, observations, rewards, terminated, truncated, infos = found
        self._land(slots)
        return Batch(slots, observations, rewards, terminated, truncated, _told(infos))

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        if self._closed or self._sent:
            self._check_open("step")
            self._check_idle(np.arange(self.num_envs))
        results = self._runner.step(actions, self._banks[0])
        self._banks.rotate(-1)
        return results if results[4] is None else (*results[:4], _told(results[4]))

    def begin_step(self, actions: Any) -> None:
        """Check actions for every slot, and begin to step them."""
        self.send(actions)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for what ``begin_step`` has begun."""
        self._check_open("step")
        if len(self._sent) != 1 or len(self._sent[0]) != self.num_envs:
            raise NoAsyncCallError("no step of all slots is in flight", "step")
        return self.recv(timeout=timeout)[1:]

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""
        self._runner.drop()
        self._land(None)

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots, as a batch, without stepping them."""
        self._check_open("latest")
        chosen = slot_numbers(slots, self.num_envs)
        self._check_idle(chosen)
        observations = self._runner.latest(chosen, self._banks[0])
        self._banks.rotate(-1)
        return observations

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach each slot as an object: see :class:`~shoal.pools.kernel_slot.KernelSlot`."""
        self._check_open("call")
        chosen = slot_numbers(slots, self.num_envs)
        if what == "render":
            return list(self.render(chosen))
        results = []
        name = what if isinstance(what, str) else what.__name__
        for number in chosen.tolist():
            with naming_slot(number, self.num_envs, f"calling {name!r}"):
                slot: Any = KernelSlot(self, number)
                if not isinstance(what, str):
                    results.append(what(slot, *args, **kwargs))
                    continue
                found = slot.get_wrapper_attr(what)
                results.append(found(*args, **kwargs) if callable(found) else found)
        return results

    def render(self, slots: SlotChoice = None) -> npt.NDArray[np.uint8]:
        """Pictures of these slots, drawn at the same time: (slots, height, width, 3)."""
        self._check_open("render")
        if self.render_mode is None:
            raise ValueError("the vector was made without render_mode='rgb_array'")
        chosen = slot_numbers(slots, self.num_envs)
        self._check_idle(chosen)
        if self.kernel.paint is None:
            return self._runner.draw(chosen)
        return np.stack([self.kernel.paint(self.state[slot]) for slot in chosen])

    @property
    def state(self) -> npt.NDArray[Any]:
        """The states of all slots, as an array of records that can be read and written."""
        self._check_open("state")
        self._check_idle(np.arange(self.num_envs))
        return self._runner.states.view(self.kernel.state_dtype)[:, 0]

    def save(self, slots: SlotChoice = None) -> npt.NDArray[np.uint8]:
        """Everything about these slots, a row of bytes for each: state, randomness, episode."""
        self._check_open("save")
        chosen = slot_numbers(slots, self.num_envs)
        self._check_idle(chosen)
        return self._runner.save(chosen)

    def restore(self, saved: npt.NDArray[np.uint8], slots: SlotChoice = None) -> None:
        """Put slots, of this vector or another one of this kernel, back to what they were."""
        self._check_open("restore")
        chosen = slot_numbers(slots, self.num_envs)
        self._check_idle(chosen)
        expected = self._runner.save(chosen[:1]).shape[1]
        rows = np.ascontiguousarray(saved)
        if rows.dtype != np.uint8 or rows.shape != (len(chosen), expected):
            raise ValueError(
                f"expected {len(chosen)} saved slots of {expected} bytes each, got an array of "
                f"dtype {rows.dtype} and shape {rows.shape}"
            )
        self._runner.restore(chosen, rows)

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:  # noqa: ARG002
        """End the threads, after the chunks that they are in; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._stop.detach()
            if not self._runner.stop(_PATIENCE if timeout is None else timeout):
                warnings.warn(
                    "a thread is still inside the kernel, and was left there", stacklevel=2
                )

    def abandon(self) -> None:
        """Give back everything, for a vector that is garbage and was not closed."""
        self.close()

    def parameter(self, slot: int, name: str) -> float:
        """A parameter of a slot."""
        return self._runner.parameters(slot)[list(self.kernel.defaults).index(name)]

    def set_parameter(self, slot: int, name: str, value: float) -> None:
        """Set a parameter of a slot, from its next step on."""
        self._runner.set_parameter(slot, list(self.kernel.defaults).index(name), value)

    def seed(self, slot: int) -> int | None:
        """The seed of a slot's generator."""
        return self._runner.seed(slot)

    def generator(self, slot: int) -> np.random.Generator:
        """A copy of a slot's generator, as NumPy's."""
        if self._counter_based:
            raise NotImplementedError("NumPy has no such generator as seeding='counter' uses")
        (state_low, state_high), (low, high), has_half, half = self._runner.random_state(slot)
        bits = np.random.PCG64()
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": state_high << 64 | state_low, "inc": high << 64 | low},
            "has_uint32": has_half,
            "uinteger": half if has_half else 0,
        }
        return np.random.Generator(bits)

    def attributes(self, slot: int) -> dict[str, Any]:
        """What a user has attached to a slot."""
        return self._attributes.setdefault(slot, {})

    def _fly(self, slots: npt.NDArray[np.int64]) -> None:
        self._sent.append(slots)
        self._flying[slots] = True

    def _land(self, slots: npt.NDArray[np.int64] | None) -> None:
        """Take note that these slots, or all, are in flight no more."""
        if slots is None or len(slots) == self.in_flight:
            self._sent.clear()
            self._flying[:] = False
            return
        self._flying[slots] = False
        left = (sent[self._flying[sent]] for sent in self._sent)
        self._sent = [sent for sent in left if len(sent)]

    def _check_idle(self, slots: npt.NDArray[np.int64]) -> None:
        if self._sent and self._flying[slots].any():
            busy = slots[np.argmax(self._flying[slots])]
            raise AlreadyPendingCallError(
                f"slot {busy} is in flight already: receive it before sending it again", "recv"
            )

    def _check_open(self, doing: str) -> None:
        if self._closed:
            raise ClosedEnvironmentError(f"{doing}: the vector environment is closed")

    def __getstate__(self) -> dict[str, Any]:
        if self._sent:
            raise AlreadyPendingCallError(
                f"{self.in_flight} slots are in flight: receive them before copying", "recv"
            )
        native = ("_intake", "_runner", "_banks", "_stop")
        state = {name: value for name, value in vars(self).items() if name not in native}
        ours = list(self.kernel.values.values())
        theirs = enumerate(map(self._runner.parameters, range(self.num_envs)))
        parameters = {slot: values for slot, values in theirs if values != ours}
        return state | {"saved": self._runner.save(None), "parameters": parameters}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved, parameters = state.pop("saved"), state.pop("parameters")
        vars(self).update(state)
        self._prepare()
        for slot, values in parameters.items():
            for number, value in enumerate(values):
                self._runner.set_parameter(slot, number, value)
        self._runner.restore(None, saved)


def _stopped(runner: _native.KernelRunner) -> None:
    runner.stop(_PATIENCE)


def _told(infos: Any) -> ColumnInfos | None:
    if infos is None:
        return None
    columns, episodes, finals = infos
    if finals is not None:
        rows, observations, last = finals
        finals = Finals(rows, observations, last or {})
    return ColumnInfos(columns or {}, episodes, finals)
