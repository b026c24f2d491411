"""The pool of a client, whose slots are on a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from shoal import _native
from shoal._memory import VectorColumns
from shoal._spaces import Layout, VectorSpaces
from shoal._spaces.leaves import batch_of_leaves
from shoal._types import Results
from shoal.errors import ProtocolError, ReceiveTimeoutError
from shoal.pools._base import (
    Batch,
    SlotChoice,
    WorkerState,
    check_open,
    checked_seeds,
    slot_numbers,
)
from shoal.pools._environments import Called
from shoal.remote._body_format import BodyFormat
from shoal.remote._deadline import Deadline
from shoal.remote._exit_hooks import release_in_children
from shoal.remote._link import Link
from shoal.remote._messages import CallRequest, ResetRequest, StepRequest, pack_message
from shoal.remote._request_dispatcher import RequestDispatcher
from shoal.remote._response_handler import ResponseHandler
from shoal.remote._rpc_allowlist import allowed_name
from shoal.remote._space_codec import decode_space
from shoal.remote._stats import Stats
from shoal.remote._target import Target
from shoal.remote._value_codec import pack_values, unpack_values
from shoal.remote._wire import SOME_SLOTS, WHOLE, Kind

__all__ = ["Deadlines", "RemotePool", "per_slot_deadlines"]

_MAX_SLOTS, _MAX_NUMBERS = 1 << 24, 1 << 30
"""Largest number of slots, and of numbers in the observations or actions of all slots."""

_CLOSE_TIMEOUT = 10.0
"""Seconds that the server has by default to close its environments."""

_OBJECT_SIZE = 1 << 14
"""Numbers that a part without fixed shape counts for: each slot has a copy of its space."""

Deadlines = float | Sequence[float] | npt.NDArray[np.floating[Any]] | None


class RemotePool:
    """Slots of a server, over one connection.

    Args:
        target: The server, with the options of the connection.
    """

    envs = None
    copy = True

    def __init__(self, target: Target) -> None:
        self._target = target
        self.restarts = target.on_lost == "truncate"
        self._closed = False
        link = Link(target)
        try:
            self._set_up(link)
        except BaseException:
            link.close()
            raise
        release_in_children(self)

    def _set_up(self, link: Link) -> None:
        """Create spaces, memory and the request dispatcher from the session's parameters."""
        info = link.info
        values = unpack_values(info.values)
        try:
            self.num_envs = info.num_envs
            requested = self._target.num_envs
            if not 0 < self.num_envs <= _MAX_SLOTS:
                raise ValueError(f"{self.num_envs} slots, expected 1 to {_MAX_SLOTS}")
            if requested not in (None, self.num_envs):
                raise ValueError(f"{requested} slots were requested, got {self.num_envs}")
            self.autoreset_mode = AutoresetMode(info.autoreset_mode)
            self.render_mode = info.render_mode
            self.metadata: dict[str, Any] = dict(values["metadata"])
            single, action = decode_space(values["observation"]), decode_space(values["action"])
            batched = values["batch"]
        except (KeyError, TypeError, ValueError) as error:
            raise ProtocolError(f"invalid session parameters: {error!r}") from error
        self._check_size(single)
        self._check_size(action)
        self.spaces = VectorSpaces(
            single,
            batch_space(single, self.num_envs) if batched is None else decode_space(batched),
            action,
            batch_space(action, self.num_envs),
        )
        self._layout = Layout.of(single)
        actions = Layout.of(action, ordered_like=self.spaces.action)
        columns = VectorColumns(self._layout, actions, self.num_envs, 0)
        mode = getattr(_native.Autoreset, self.autoreset_mode.name)
        state = columns.state()
        self._intake = _native.ActionIntake(actions.tree, columns.actions(), state, mode)
        fast_path: _native.FastPathClient | None = None
        if not (link.retransmits or self._layout.objects or actions.objects):
            fast_path = _native.FastPathClient(
                self._intake,
                state,
                self._layout.tree,
                updates_finished=self.autoreset_mode is not AutoresetMode.SAME_STEP,
                step=Kind.STEP,
                batch=Kind.BATCH,
                whole=WHOLE,
            )
        self._action_columns = columns.actions()
        self._request_format = BodyFormat(actions)
        self._all_slots = np.arange(self.num_envs)
        handler = ResponseHandler(
            single,
            self._layout,
            self.num_envs,
            self.autoreset_mode,
            columns.finished(),
            keeps_final=self.restarts,
        )
        self._dispatcher = RequestDispatcher(
            link, handler, self._layout, self.num_envs, fast_path, restarts=self.restarts
        )

    def _check_size(self, space: Space[Any]) -> None:
        """Check that the slots are not too large, before memory is allocated for them."""
        layout = Layout.of(space)
        numbers = sum(int(np.prod(leaf.shape)) for leaf in layout.leaves)
        numbers += _OBJECT_SIZE * len(layout.objects)
        if numbers * self.num_envs > _MAX_NUMBERS:
            raise ProtocolError(
                f"{self.num_envs} slots of {numbers} numbers are too many: expected at most "
                f"{_MAX_NUMBERS} numbers"
            )

    @property
    def in_flight(self) -> int:
        """Number of slots that were sent or reset and not yet received."""
        return self._dispatcher.in_flight

    @property
    def timeout(self) -> float | None:
        """Seconds to wait for a response by default."""
        return self._target.timeout

    @property
    def announced(self) -> float:
        """The longest expected duration in seconds of the requests in flight."""
        return self._dispatcher.pending.expected_duration

    # A step of every slot

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        dispatcher = self._dispatcher
        if not self._closed and not dispatcher.in_flight:
            deadline = self._deadline(None)
            results = dispatcher.step_fast(actions)
            if results:
                return results
            if dispatcher.has_round_in_flight:  # the response was not plain tensors, or is late
                return dispatcher.wait_for_round(deadline)
        self.begin_step(actions)
        return self.end_step()

    def begin_step(self, actions: Any, deadlines: Deadlines = None) -> None:
        """Check actions for every slot, and send them."""
        self._check_idle(None, "step")
        self._intake.accept(actions, None)
        if self._dispatcher.pending.restarts.concerned(range(self.num_envs)):
            self._send_some(self._all_slots, deadlines)
            return
        self._dispatcher.request(
            Kind.STEP,
            self._step_meta(None, deadlines),
            self._action_columns,
            is_round=True,
            size=self._request_format.size_of(self.num_envs, 0),
            rows=self.num_envs,
            flags=WHOLE,
        )

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` started; can be called again after a timeout."""
        self._check_open("step")
        if self.in_flight < self.num_envs:
            self._dispatcher.pending.ledger.check_round()
        return self._dispatcher.wait_for_round(self._deadline(timeout))

    # Slots that are sent separately

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one seed for each of these slots."""
        chosen = slot_numbers(slots, self.num_envs)
        checked = checked_seeds(seeds, len(chosen))
        self._check_idle(chosen, "reset")
        dispatcher = self._dispatcher
        if dispatcher.pending.restarts.is_under_way:
            dispatcher.wait(
                lambda: not dispatcher.pending.restarts.is_under_way, self._deadline(None)
            )
        integers = [None if seed is None else int(seed) for seed in checked]
        values = pack_values([integers, options], strict=True)
        request = ResetRequest(tuple(chosen.tolist()), values)
        dispatcher.request(Kind.RESET, pack_message(request), slots=chosen)
        # A slot that is reset need not report that it has lost its environment.
        dispatcher.pending.restarts.take_losses(chosen.tolist())

    def send(self, actions: Any, slots: SlotChoice = None, *, deadlines: Deadlines = None) -> None:
        """Check actions, one for each of these slots, and send them.

        Args:
            actions: One action per slot.
            slots: The slots; None for all.
            deadlines: Seconds, one value for all slots or one per slot. A slot that misses its
                deadline returns its newest observation and an info ``status``.
        """
        chosen = slot_numbers(slots, self.num_envs)
        self._check_idle(chosen, "send")
        self._intake.accept(actions, chosen)
        self._send_some(chosen, deadlines)

    def _send_some(self, slots: npt.NDArray[np.int64], deadlines: Deadlines) -> None:
        """Send the actions of these slots, except slots that have a loss to report."""
        lost = self._dispatcher.pending.restarts.concerned(slots.tolist())
        if lost:
            is_sent = ~np.isin(slots, lost)
            seconds = per_slot_deadlines(deadlines, len(slots))
            slots = slots[is_sent]
            deadlines = np.array(seconds)[is_sent] if seconds else None
        if len(slots):
            self._dispatcher.request(
                Kind.STEP,
                self._step_meta(slots, deadlines),
                [slots, *(column[slots] for column in self._action_columns)],
                slots=slots,
                size=self._request_format.size_of(len(slots), SOME_SLOTS),
                rows=len(slots),
                flags=SOME_SLOTS,
            )
        self._dispatcher.report_losses(lost)

    def _step_meta(self, slots: npt.NDArray[np.int64] | None, deadlines: Deadlines) -> bytes:
        if deadlines is None and not self._intake.has_extras(slots):
            return b""
        count = self.num_envs if slots is None else len(slots)
        extras = b""
        if self._intake.has_extras(slots):
            objects, as_given = self._intake.extras(slots)
            other_dtypes = {
                str(leaf): np.stack(rows) for leaf, rows in enumerate(as_given) if rows is not None
            }
            extras = pack_values([objects, other_dtypes], strict=True)
        return pack_message(StepRequest(per_slot_deadlines(deadlines, count), extras))

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, first come, first served, and return those that are done."""
        self._check_open("recv")
        deadline = self._deadline(timeout)
        dispatcher = self._dispatcher
        if dispatcher.has_round_in_flight:
            return Batch(self._all_slots.copy(), *dispatcher.wait_for_round(deadline))
        chosen = None if slots is None else slot_numbers(slots, self.num_envs)
        wanted = dispatcher.pending.ledger.wanted(min_slots, max_slots, chosen)
        # A restart of the session replaces `pending`.
        dispatcher.wait(lambda: dispatcher.pending.arrivals.has(wanted), deadline)
        return dispatcher.pending.arrivals.take_wanted(wanted)

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""
        while self.in_flight:
            self.recv()

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Cancel steps that have not started; they are received with status "not executed".

        Returns:
            An empty list: cancelled slots stay in flight until they are received.
        """
        self._check_open("cancel")
        self._call(Kind.CANCEL, pack_values(slot_numbers(slots, self.num_envs).tolist()))
        return []

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots as a batch, without stepping."""
        self._check_open("latest")
        chosen = slot_numbers(slots, self.num_envs)
        if not len(chosen):
            empty = BodyFormat(self._layout).allocate(0)
            return batch_of_leaves(self._layout, empty, [[] for _ in self._layout.objects])
        return self._call(Kind.LATEST, pack_values(chosen.tolist()))

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call a method or read an attribute by name; arguments and results are plain values."""
        self._check_open("call")
        is_function = not isinstance(what, str)
        name = allowed_name(what) if is_function else str(what)
        chosen = tuple(slot_numbers(slots, self.num_envs).tolist())
        request = CallRequest(name, is_function, chosen, pack_values([args, kwargs], strict=True))
        results: list[Any] = self._call(Kind.CALL, pack_message(request))
        return results

    def stats(self) -> Stats:
        """Return the statistics of the connection."""
        return self._dispatcher.link.stats()

    def worker_states(self) -> list[WorkerState]:
        """Return one state for the server; its workers are not visible here."""
        address = str(self._target.address)
        reconnects = self.stats().reconnects
        return [WorkerState("server", range(self.num_envs), place=address, restarts=reconnects)]

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close the environments on the server and the connection; a second call does nothing.

        Args:
            terminate: Close the connection at once, without waiting for the server.
            timeout: Seconds that the server has to close the environments.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if not terminate:
                seconds = _CLOSE_TIMEOUT if timeout is None else timeout
                self._dispatcher.close_session(Deadline(seconds, is_extensible=False))
        except (ConnectionError, ReceiveTimeoutError):
            return  # the server notices the closed connection
        finally:
            self._dispatcher.disconnect()

    def abandon(self) -> None:
        """Close the connection of a vector that is garbage collected without being closed."""
        self.close(terminate=True)

    def release_in_child(self) -> None:
        """Release the socket in a forked child without closing the connection of the parent."""
        self._closed = True
        self._dispatcher.release_in_child()

    # Helpers

    def _call(self, kind: Kind, meta: bytes) -> Any:
        return self._dispatcher.call(kind, meta, self._deadline(None))

    def _deadline(self, timeout: float | None) -> Deadline:
        """Return the deadline of a call; only the default timeout can be extended."""
        if timeout is None:
            return Deadline(self.timeout, is_extensible=True)
        return Deadline(timeout, is_extensible=False)

    def _check_idle(self, slots: npt.NDArray[np.int64] | None, method: str) -> None:
        self._check_open(method)
        self._dispatcher.check_idle(slots)

    def _check_open(self, method: str) -> None:
        check_open(self._closed, method)


def per_slot_deadlines(deadlines: Deadlines, count: int) -> tuple[float, ...]:
    """Return one deadline per slot; empty if there are none.

    Raises:
        ValueError: The deadlines are not positive numbers, or of another count.
    """
    if deadlines is None:
        return ()
    try:
        seconds = np.asarray(deadlines, np.float64)
    except (TypeError, ValueError):
        seconds = np.array(np.nan)
    if seconds.shape not in ((), (count,)) or not (seconds > 0).all():
        raise ValueError(
            f"deadlines must be a positive number of seconds, or {count} of them, got {deadlines!r}"
        )
    seconds = np.broadcast_to(seconds, (count,))
    return tuple(seconds.tolist())
