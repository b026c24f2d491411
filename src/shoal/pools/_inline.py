"""The inline pool: the caller steps every slot itself, within ``recv``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode

from shoal import _native
from shoal._memory import VectorColumns
from shoal._spaces import Layout, ObservationMode, agree
from shoal._types import Results, Work
from shoal.pools._base import (
    Batch,
    SlotChoice,
    WorkerState,
    caller_state,
    check_open,
    checked_seeds,
    slot_numbers,
)
from shoal.pools._environments import (
    Called,
    EnvFactory,
    call_environments,
    checked_factories,
    close_environments,
    open_environments,
)

__all__ = ["InlinePool"]

# A view stays valid until the batch after next, and a masked reset fills two banks for one batch.
_BANKS = 3


class InlinePool:
    """Steps Python environments one after the other, without workers.

    Args:
        factories: One function for each slot, which makes its environment.
        observation_mode: As in ``gymnasium.vector.SyncVectorEnv``.
        autoreset_mode: What happens at the end of an episode.
        copy: Whether batches are new arrays, or views that are valid until the batch after next.
        statistics: Whether to report return, length and time of each episode that ends.
    """

    restarts = False

    def __init__(
        self,
        factories: Iterable[EnvFactory],
        *,
        observation_mode: ObservationMode = "same",
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        statistics: bool = False,
    ) -> None:
        self.envs = open_environments(checked_factories(factories))
        try:
            self.num_envs = len(self.envs)
            self.autoreset_mode = autoreset_mode
            self.metadata = dict(self.envs[0].metadata)
            self.render_mode = self.envs[0].render_mode
            self.spaces = agree(
                [env.observation_space for env in self.envs],
                [env.action_space for env in self.envs],
                observation_mode,
            )
            self.copy, self._statistics = copy, statistics
            self._prepare()
        except BaseException:
            close_environments(self.envs, reporting=False)
            raise
        self._queue: list[Work] = []  # of the slots in flight
        self._may_be_in_round = False  # saves `step` a call of the ledger
        self._is_changing = False  # whether queue and ledger are being changed, or this was cut off
        self._all_slots = np.arange(self.num_envs)
        self._all_slots.flags.writeable = False
        self._closed = False

    def _prepare(self) -> None:
        observations = Layout.of(self.spaces.single_observation)
        # Gymnasium gives an environment its Dict action in the order of the batched space.
        actions = Layout.of(self.spaces.single_action, ordered_like=self.spaces.action)
        banks = 0 if self.copy else _BANKS
        self._columns = columns = VectorColumns(observations, actions, self.num_envs, banks)
        state = columns.state()
        mode = getattr(_native.Autoreset, self.autoreset_mode.name)
        self._intake = _native.ActionIntake(actions.tree, columns.actions(), state, mode)
        self._stepper = _native.Stepper(
            observations.tree, self._intake, state, self.envs, mode, self._statistics, self.copy
        )
        self._ledger = _native.SlotLedger(self.num_envs)
        # The bank to fill next is the first one; None stands for arrays that belong to the user.
        filled = (columns.bank(number) for number in range(banks))
        self._banks: deque[_native.Bank | None] = deque(filled if banks else [None])

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        self._check_open("reset")
        chosen = slot_numbers(slots, self.num_envs)
        checked = checked_seeds(seeds, len(chosen))
        self._repair_queue()
        self._ledger.check_idle(chosen)
        self._post((chosen, checked, options))

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and queue their steps."""
        self._check_open("send")
        chosen = self._all_slots if slots is None else slot_numbers(slots, self.num_envs)
        self._repair_queue()
        self._ledger.check_idle(chosen)
        self._intake.accept(actions, chosen)
        self._post((chosen, None, None))

    def _post(self, work: Work) -> None:
        self._is_changing = True
        self._queue.append(work)
        self._ledger.mark_in_flight(work[0])
        self._is_changing = False

    def _repair_queue(self) -> None:
        """Discard work of slots that are not in flight, after an interrupt cut off a change.

        Every change leaves the queue with too much work at any time, and never with too little.
        """
        if self._is_changing:
            in_flight = self._ledger.slots_in_flight()
            self._queue, _ = self._split_queue(in_flight)
            self._is_changing = False

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,  # noqa: ARG002
        *,
        max_slots: int | None = None,  # noqa: ARG002
        slots: SlotChoice = None,
    ) -> Batch:
        """Step queued slots in the order in which they were queued, and return them.

        ``timeout`` and ``max_slots`` have no effect: the caller steps the slots itself, and never
        more of them than requested.
        """
        self._check_open("recv")
        self._repair_queue()
        if self._ledger.is_in_round:
            return Batch(self._all_slots.copy(), *self.end_step())
        chosen = None if slots is None else slot_numbers(slots, self.num_envs)
        if self._ledger.in_flight or not self._queue:  # nothing to check if no slots were sent
            self._ledger.wanted(min_slots, None, chosen)
        remaining: list[Work] = []
        if chosen is not None:
            work, remaining = self._split_queue(chosen)
        elif min_slots is None:
            work = self._queue
        else:
            work, remaining = self._split_first(index(min_slots))
        parts = [part for part, _, _ in work]
        chosen = parts[0] if len(parts) == 1 else np.concatenate(parts)
        self._remove(chosen, remaining)
        batch = Batch(chosen, *self._stepper.run(work, self._banks[0]))
        # Only now: after a failure, the views of the previous batch stay valid.
        self._banks.rotate(-1)
        return batch

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        self._check_all_idle()
        results = self._stepper.step(actions, self._banks[0])
        self._banks.rotate(-1)
        return results

    def begin_step(self, actions: Any) -> None:
        """Check actions for every slot; they are stepped in ``end_step``."""
        self._check_all_idle()
        self._intake.accept(actions, None)
        self._may_be_in_round = True
        self._ledger.begin_round()

    def end_step(self, timeout: float | None = None) -> Results:  # noqa: ARG002
        """Step every slot with the actions of ``begin_step``."""
        self._check_open("step")
        self._ledger.check_round()
        self._ledger.end_round()
        self._may_be_in_round = False
        results = self._stepper.run(None, self._banks[0])
        self._banks.rotate(-1)
        return results

    def _check_all_idle(self) -> None:
        if self._closed or self._queue or self._may_be_in_round:
            self._check_open("step")
            self._repair_queue()
            self._ledger.check_idle(None)
            self._may_be_in_round = False

    def drop(self) -> None:
        """Discard all queued work."""
        self._is_changing = True
        self._ledger.clear_all()
        self._queue = []
        self._is_changing = False

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Discard the queued work of these slots, and return those that had any."""
        self._repair_queue()
        in_flight = self._ledger.slots_in_flight()
        cancelled = in_flight[np.isin(in_flight, slot_numbers(slots, self.num_envs))]
        if cancelled.size:
            self._remove(cancelled, self._split_queue(cancelled)[1])
        numbers: list[int] = cancelled.tolist()
        return numbers

    @property
    def in_flight(self) -> int:
        """How many slots were sent or reset and not yet received."""
        return self._ledger.in_flight

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots, as a batch, without a step."""
        self._check_open("latest")
        observations = self._stepper.latest(slot_numbers(slots, self.num_envs), self._banks[0])
        self._banks.rotate(-1)
        return observations

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call a method or a function with each environment, or read an attribute."""
        self._check_open("call")
        envs = {slot: self.envs[slot] for slot in slot_numbers(slots, self.num_envs).tolist()}
        results, error = call_environments(envs, self.num_envs, what, args, kwargs)
        if error is not None:
            raise error
        return results

    def worker_states(self) -> list[WorkerState]:
        """Return the caller, which drives all slots."""
        return [caller_state(range(self.num_envs))]

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:  # noqa: ARG002
        """Close every environment; a second call does nothing. There are no workers."""
        if not self._closed:
            self._closed = True
            self.drop()
            close_environments(self.envs)

    def abandon(self) -> None:
        """Close the environments of a pool that was garbage-collected without being closed."""
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.in_flight:
            raise AlreadyPendingCallError(
                f"{self.in_flight} slots are in flight: receive them before copying", "recv"
            )
        native = ("_columns", "_intake", "_stepper", "_ledger", "_banks")
        state = {name: value for name, value in vars(self).items() if name not in native}
        return state | {"slot state": self._columns.saved(), "latest": self._stepper.memory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved, latest = state.pop("slot state"), state.pop("latest")
        vars(self).update(state)
        self._prepare()
        self._columns.restore(saved)
        self._stepper.memory = latest

    def _split_first(self, count: int) -> tuple[list[Work], list[Work]]:
        """Return the queued work of the first ``count`` slots, and the remaining work."""
        first: list[Work] = []
        remaining: list[Work] = []
        for slots, seeds, options in self._queue:
            cut = min(count, len(slots))
            count -= cut
            for part, places in ((first, slice(cut)), (remaining, slice(cut, None))):
                if len(slots[places]):
                    part.append((slots[places], None if seeds is None else seeds[places], options))
        return first, remaining

    def _split_queue(self, slots: npt.NDArray[np.int64]) -> tuple[list[Work], list[Work]]:
        """Return the queued work of these slots, in this order, and the remaining work."""
        queued: dict[int, Work] = {
            int(slot): (part[[place]], None if seeds is None else [seeds[place]], options)
            for part, seeds, options in self._queue
            for place, slot in enumerate(part)
        }
        chosen = [queued.pop(slot) for slot in slots.tolist()]
        return chosen, list(queued.values())

    def _remove(self, slots: npt.NDArray[np.int64], remaining: list[Work]) -> None:
        """Make slots idle whose work is executed or discarded."""
        self._is_changing = True
        self._ledger.clear(slots)
        self._queue = remaining
        self._is_changing = False

    def _check_open(self, doing: str) -> None:
        check_open(self._closed, doing)
