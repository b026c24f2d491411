"""The kernel pool: native environments, stepped on threads without the GIL."""

from __future__ import annotations

import warnings
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from shoal import _native
from shoal._memory import VectorColumns
from shoal._spaces import VectorSpaces
from shoal._types import ColumnInfos, Finals, Results
from shoal.errors import ReceiveTimeoutError
from shoal.kernels._definition import Kernel
from shoal.pools._base import (
    Batch,
    SlotChoice,
    WorkerState,
    caller_state,
    check_open,
    checked_seeds,
    slot_numbers,
)
from shoal.pools._environments import Called, call_environments
from shoal.pools._kernel_slot import KernelSlot
from shoal.pools._shares import available_cores

__all__ = ["KernelPool"]

# A view stays valid until the batch after next, as in the inline pool.
_BANKS = 3

_CLOSE_TIMEOUT = 10.0
"""Seconds that ``close`` waits for a thread that is inside a kernel."""


class KernelPool:
    """Steps slots of a kernel, in chunks that the caller and its threads share.

    The caller executes work of less than about 20 microseconds alone. The threads are started when
    there is more work for the first time.

    Args:
        kernel: The kernel to step.
        num_envs: The number of slots.
        autoreset_mode: What happens at the end of an episode.
        copy: Whether batches are new arrays, or views that are valid until the batch after next.
        statistics: Whether to report return, length and time of each episode that ends.
        counter_based: Whether slots draw from a counter-based generator instead of NumPy's PCG64.
        workers: The number of threads besides the caller; None for the number of other cores.
        cores: The cores to bind the threads to, in this order; threads are not bound by default.
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
        self._ledger = self._runner.ledger
        self._closed = False
        # The threads must have ended when the interpreter ends.
        self._stop = weakref.finalize(self, _stop_runner, self._runner)

    @property
    def in_flight(self) -> int:
        """How many slots were sent or reset and not yet received."""
        return self._ledger.in_flight

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Start resets; ``seeds`` has one for each of these slots."""
        self._check_open("reset")
        chosen = slot_numbers(slots, self.num_envs)
        checked = checked_seeds(seeds, len(chosen))
        numbers = self.kernel.read_options(options or {}, self.kernel.options)
        self._runner.send_reset(chosen, checked, numbers)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and start to step them."""
        self._check_open("send")
        self._runner.send(actions, slot_numbers(slots, self.num_envs))

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, first come, first served, and return slots that are done.

        By default, all slots in flight are returned, in the order in which they were sent. With
        ``slots``, these are returned in the given order.
        """
        self._check_open("recv")
        chosen = None if slots is None else slot_numbers(slots, self.num_envs)
        return self._receive(self._ledger.wanted(min_slots, max_slots, chosen), timeout)

    def _receive(self, wanted: _native.Wanted, timeout: float | None) -> Batch:
        seconds = -1.0 if timeout is None else max(0.0, timeout)
        received = self._runner.receive(wanted, seconds, self._banks[0])
        if received is None:
            raise ReceiveTimeoutError(f"slots were not done within {timeout} seconds")
        self._banks.rotate(-1)
        slots, observations, rewards, terminated, truncated, infos = received
        return Batch(slots, observations, rewards, terminated, truncated, _column_infos(infos))

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        results = self._runner.step(actions, self._banks[0])
        self._banks.rotate(-1)
        return results if results[4] is None else (*results[:4], _column_infos(results[4]))

    def begin_step(self, actions: Any) -> None:
        """Check actions for every slot, and start to step them."""
        self.send(actions)
        self._ledger.begin_round()

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` started."""
        self._check_open("step")
        self._ledger.check_round()
        return self._receive(self._ledger.wanted(None, None, None), timeout)[1:]

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""
        self._runner.drop()

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots, as a batch, without a step."""
        self._check_open("latest")
        observations = self._runner.latest(slot_numbers(slots, self.num_envs), self._banks[0])
        self._banks.rotate(-1)
        return observations

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call each slot as a :class:`~shoal.pools._kernel_slot.KernelSlot`."""
        self._check_open("call")
        chosen = slot_numbers(slots, self.num_envs)
        if what == "render" and self.render_mode is not None:
            return list(self.render(chosen))  # in one call of the kernel
        envs: Any = {slot: KernelSlot(self, slot) for slot in chosen.tolist()}
        results, error = call_environments(envs, self.num_envs, what, args, kwargs)
        if error is not None:
            raise error
        return results

    def render(self, slots: SlotChoice = None) -> npt.NDArray[np.uint8]:
        """Return images of these slots, as an array of shape (slots, height, width, 3)."""
        self._check_open("render")
        if self.render_mode is None:
            raise ValueError("the vector was made without render_mode='rgb_array'")
        return self.draw(slots)

    def draw(self, slots: SlotChoice = None) -> npt.NDArray[np.uint8]:
        """Return images as :meth:`render` does, with any render mode."""
        self._check_open("draw")
        chosen = slot_numbers(slots, self.num_envs)
        if not len(chosen):
            raise ValueError("slots must not be empty")
        paint = self.kernel.paint
        if paint is None:
            return self._runner.draw(chosen)
        states = self.state.view(np.recarray)
        images = [np.asarray(paint(states[slot])) for slot in chosen]
        for slot, image in zip(chosen, images, strict=True):
            if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
                raise ValueError(
                    f"slot {slot}: render returned an array of dtype {image.dtype} and shape "
                    f"{image.shape}, expected uint8 and (height, width, 3)"
                )
        return np.stack(images)

    @property
    def state(self) -> npt.NDArray[Any]:
        """The states of all slots, as a writable array of records."""
        self._check_open("state")
        states = self._runner.states
        if not states.shape[1]:
            return np.zeros(self.num_envs, np.dtype([]))
        return states.view(self.kernel.state_dtype)[:, 0]

    def save(self, slots: SlotChoice = None) -> npt.NDArray[np.uint8]:
        """Return a row of bytes for each slot with its state, generator and episode.

        Parameters are not included.
        """
        self._check_open("save")
        return self._runner.save(slot_numbers(slots, self.num_envs))

    def restore(self, saved: npt.NDArray[np.uint8], slots: SlotChoice = None) -> None:
        """Restore slots from rows of :meth:`save`, of any vector of this kernel."""
        self._check_open("restore")
        chosen = slot_numbers(slots, self.num_envs)
        expected = self._runner.save(chosen[:1]).shape[1]
        rows = np.array(saved)
        if rows.dtype != np.uint8 or rows.shape != (len(chosen), expected):
            raise ValueError(
                f"expected {len(chosen)} saved slots of {expected} bytes each, got an array of "
                f"dtype {rows.dtype} and shape {rows.shape}"
            )
        self._runner.restore(chosen, rows)

    def worker_states(self) -> list[WorkerState]:
        """Return the caller and its threads, which share all slots.

        Threads that were not started yet are left out.
        """
        all_slots = range(self.num_envs)
        ids = self._runner.thread_ids
        return [
            caller_state(all_slots),
            *(
                WorkerState(f"thread {number}", all_slots, thread=thread)
                for number, thread in enumerate(ids)
                if thread
            ),
        ]

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:  # noqa: ARG002
        """Stop the threads after their current chunks; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._stop.detach()
            if not self._runner.stop(_CLOSE_TIMEOUT if timeout is None else timeout):
                warnings.warn(
                    "a thread is still executing the kernel and was not stopped", stacklevel=2
                )

    def abandon(self) -> None:
        """Release all resources of a vector that was garbage-collected without being closed."""
        self.close()

    def parameter(self, slot: int, name: str) -> float:
        """Return a parameter of a slot."""
        return self._runner.parameters(slot)[list(self.kernel.defaults).index(name)]

    def set_parameter(self, slot: int, name: str, value: float) -> None:
        """Set a parameter of a slot; the kernel reads it in the next step or reset."""
        self._runner.set_parameter(slot, list(self.kernel.defaults).index(name), value)

    def seed(self, slot: int) -> int | None:
        """Return the seed of a slot's generator."""
        return self._runner.seed(slot)

    def generator(self, slot: int) -> np.random.Generator:
        """Return a copy of a slot's generator as a NumPy generator."""
        if self._counter_based:
            raise NotImplementedError("NumPy does not have the generator of seeding='counter'")
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
        """Return the attributes that the user has set on a slot."""
        return self._attributes.setdefault(slot, {})

    def _check_open(self, doing: str) -> None:
        check_open(self._closed, doing)

    def __getstate__(self) -> dict[str, Any]:
        if self.in_flight:
            raise AlreadyPendingCallError(
                f"{self.in_flight} slots are in flight: receive them before copying", "recv"
            )
        native = ("_intake", "_runner", "_ledger", "_banks", "_stop")
        state = {name: value for name, value in vars(self).items() if name not in native}
        if self._closed:
            return state
        defaults = list(self.kernel.values.values())
        by_slot = enumerate(map(self._runner.parameters, range(self.num_envs)))
        return state | {
            "saved": self._runner.save(None),
            "parameters": {slot: values for slot, values in by_slot if values != defaults},
            "seeds": list(map(self._runner.seed, range(self.num_envs))),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("saved", None)
        parameters, seeds = state.pop("parameters", {}), state.pop("seeds", [])
        vars(self).update(state)
        self._prepare()
        for slot, values in parameters.items():
            for number, value in enumerate(values):
                self._runner.set_parameter(slot, number, value)
        for slot, seed in enumerate(seeds):
            self._runner.set_seed(slot, seed)
        if saved is None:
            self.close()
        else:
            self._runner.restore(None, saved)


def _stop_runner(runner: _native.KernelRunner) -> None:
    runner.stop(_CLOSE_TIMEOUT)


def _column_infos(infos: Any) -> ColumnInfos | None:
    if infos is None:
        return None
    columns, episodes, finals = infos
    if finals is not None:
        rows, observations, last = finals
        finals = Finals(rows, observations, last or {})
    return ColumnInfos(columns or {}, episodes, finals)
