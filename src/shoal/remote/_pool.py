"""The pool of a client: its slots are on a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.error import ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from shoal import _native
from shoal._memory import VectorColumns
from shoal._spaces import Layout, VectorSpaces
from shoal._spaces.leaves import batch_of_leaves
from shoal._types import Results
from shoal.errors import ProtocolError, ReceiveTimeoutError
from shoal.pools._base import Batch, SlotChoice, WorkerState, checked_seeds, slot_numbers
from shoal.pools._environments import Called
from shoal.remote._conversation import Conversation
from shoal.remote._deadline import Patience
from shoal.remote._exit_hooks import forget_in_children
from shoal.remote._link import Link
from shoal.remote._messages import CallRequest, ResetRequest, StepRequest, pack_message
from shoal.remote._rpc_allowlist import name_of_reached
from shoal.remote._segments import Segments
from shoal.remote._space_codec import space_of
from shoal.remote._stats import Stats
from shoal.remote._target import Target
from shoal.remote._value_codec import pack_values, unpack_values
from shoal.remote._wire import SOME_SLOTS, WHOLE, Kind

__all__ = ["Deadlines", "RemotePool", "each_deadline"]

_MOST_SLOTS, _MOST_NUMBERS = 1 << 24, 1 << 30
"""Slots of a vector, and numbers that they observe or do, all together."""

_CLOSING = 10.0
"""Seconds that a server has to close its environments, where no timeout says it."""

_AS_LARGE = 1 << 14
"""Numbers that take as much room as a part of no fixed shape, of which each slot has its space."""

Deadlines = float | Sequence[float] | npt.NDArray[np.floating[Any]] | None


class RemotePool:
    """Slots of a server, over one connection.

    Args:
        target: The server, and what is asked of it.
    """

    envs = None
    copy = True

    def __init__(self, target: Target) -> None:
        self._target = target
        self.restarts = target.on_lost == "truncate"
        self._closed = False
        link = Link(target)
        try:
            self._learn(link)
        except BaseException:
            link.close()
            raise
        forget_in_children(self)

    def _learn(self, link: Link) -> None:
        """Learn from the server what its slots are."""
        welcome = link.welcome
        told = unpack_values(welcome.values)
        try:
            self.num_envs = welcome.num_envs
            asked = self._target.num_envs
            if not 0 < self.num_envs <= _MOST_SLOTS or asked not in (None, self.num_envs):
                raise ValueError(f"{self.num_envs} slots, {asked} were asked for")
            self.autoreset_mode = AutoresetMode(welcome.autoreset_mode)
            self.render_mode = welcome.render_mode
            self.metadata: dict[str, Any] = dict(told["metadata"])
            single, action = space_of(told["observation"]), space_of(told["action"])
            batched = told["batch"]
        except (KeyError, TypeError, ValueError) as error:
            raise ProtocolError(f"the server's welcome could not be read: {error!r}") from error
        self._check_size(single)
        self._check_size(action)
        self.spaces = VectorSpaces(
            single,
            batch_space(single, self.num_envs) if batched is None else space_of(batched),
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
        if not (link.keeps or self._layout.objects or actions.objects):
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
        self._requests = Segments(actions)
        self._all_slots = np.arange(self.num_envs)
        self._conversation = Conversation(
            link,
            single,
            self._layout,
            self.num_envs,
            self.autoreset_mode,
            columns.finished(),
            fast_path,
            restarts=self.restarts,
        )

    def _check_size(self, space: Space[Any]) -> None:
        """Refuse slots for which there would be no room, before any is made."""
        layout = Layout.of(space)
        numbers = sum(int(np.prod(leaf.shape)) for leaf in layout.leaves)
        numbers += _AS_LARGE * len(layout.objects)
        if numbers * self.num_envs > _MOST_NUMBERS:
            raise ProtocolError(f"{self.num_envs} slots of {numbers} numbers are too many")

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        return self._conversation.in_flight

    @property
    def timeout(self) -> float | None:
        """Seconds to wait for an answer where the caller does not say."""
        return self._target.timeout

    @property
    def announced(self) -> float:
        """Seconds that the server has announced to need for what is in flight."""
        return self._conversation.announced

    # A step of every slot

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        talk = self._conversation
        if not self._closed and not talk.in_flight:
            patience = self._patience(None)
            results = talk.step_fast(actions)
            if results:
                return results
            if talk.is_in_round:  # something else than a plain answer comes
                return talk.await_round(patience)
        self.begin_step(actions)
        return self.end_step()

    def begin_step(self, actions: Any, deadlines: Deadlines = None) -> None:
        """Check actions for every slot, and send them."""
        self._check_idle(None, "step")
        self._intake.accept(actions, None)
        if self._conversation.restarts.concerned(range(self.num_envs)):
            self._send_some(self._all_slots, deadlines)
            return
        self._conversation.request(
            Kind.STEP,
            self._step_meta(None, deadlines),
            self._action_columns,
            is_round=True,
            size=self._requests.bytes_of(self.num_envs, 0),
            rows=self.num_envs,
            flags=WHOLE,
        )

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for what ``begin_step`` has begun; after a timeout it can be asked for again."""
        self._check_open("step")
        if self.in_flight < self.num_envs:
            raise NoAsyncCallError("no step of all slots is in flight", "step")
        return self._conversation.await_round(self._patience(timeout))

    # Slots one by one

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        chosen = slot_numbers(slots, self.num_envs)
        given = checked_seeds(seeds, len(chosen))
        self._check_idle(chosen, "reset")
        talk = self._conversation
        if talk.restarts.is_under_way:
            talk.pump(lambda: not talk.restarts.is_under_way, self._patience(None))
        whole = [None if seed is None else int(seed) for seed in given]
        values = pack_values([whole, options], strict=True)
        request = ResetRequest(tuple(chosen.tolist()), values)
        talk.request(Kind.RESET, pack_message(request), slots=chosen)
        talk.restarts.told(chosen.tolist())  # a reset needs no news of what was before

    def send(self, actions: Any, slots: SlotChoice = None, *, deadlines: Deadlines = None) -> None:
        """Check actions, one for each of these slots, and send them.

        ``deadlines`` are seconds, for all slots or for each: a slot that is not done by then is
        answered all the same, and its info ``status`` says what has become of the action.
        """
        chosen = slot_numbers(slots, self.num_envs)
        self._check_idle(chosen, "send")
        self._intake.accept(actions, chosen)
        self._send_some(chosen, deadlines)

    def _send_some(self, slots: npt.NDArray[np.int64], deadlines: Deadlines) -> None:
        """Send the actions of these slots, but for those that have a loss to tell of."""
        told = self._conversation.restarts.concerned(slots.tolist())
        if told:
            goes = ~np.isin(slots, told)
            each = each_deadline(deadlines, len(slots))
            slots = slots[goes]
            deadlines = np.array(each)[goes] if each else None
        if len(slots):
            self._conversation.request(
                Kind.STEP,
                self._step_meta(slots, deadlines),
                [slots, *(column[slots] for column in self._action_columns)],
                slots=slots,
                size=self._requests.bytes_of(len(slots), SOME_SLOTS),
                rows=len(slots),
                flags=SOME_SLOTS,
            )
        self._conversation.tell_losses(told)

    def _step_meta(self, slots: npt.NDArray[np.int64] | None, deadlines: Deadlines) -> bytes:
        if deadlines is None and not self._intake.has_extras(slots):
            return b""
        count = self.num_envs if slots is None else len(slots)
        extras = b""
        if self._intake.has_extras(slots):
            objects, as_given = self._intake.extras(slots)
            others = {
                str(place): np.stack(rows)
                for place, rows in enumerate(as_given)
                if rows is not None
            }
            extras = pack_values([objects, others], strict=True)
        return pack_message(StepRequest(each_deadline(deadlines, count), extras))

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, first come, first served, and return what is done."""
        self._check_open("recv")
        patience = self._patience(timeout)
        talk = self._conversation
        if talk.is_in_round:
            return Batch(self._all_slots.copy(), *talk.await_round(patience))
        asked = None if slots is None else slot_numbers(slots, self.num_envs).tolist()
        wanted = talk.arrivals.wanted(min_slots, max_slots, asked)
        # By its name: after a lost session it is another one.
        talk.pump(lambda: talk.arrivals.has(wanted), patience)
        return talk.arrivals.take_wanted(wanted)

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""
        while self.in_flight:
            self.recv()

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Have the server take back what has not begun; it is received as not executed.

        Returns the slots that are not in flight any more, of which there are none here.
        """
        self._check_open("cancel")
        self._ask(Kind.CANCEL, pack_values(slot_numbers(slots, self.num_envs).tolist()))
        return []

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots, as a batch, without stepping them."""
        self._check_open("latest")
        chosen = slot_numbers(slots, self.num_envs)
        if not len(chosen):
            nothing = Segments(self._layout).room(0)
            return batch_of_leaves(self._layout, nothing, [[] for _ in self._layout.objects])
        return self._ask(Kind.LATEST, pack_values(chosen.tolist()))

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach each environment by name; arguments and results are plain values."""
        self._check_open("call")
        is_function = not isinstance(what, str)
        name = name_of_reached(what) if is_function else str(what)
        chosen = tuple(slot_numbers(slots, self.num_envs).tolist())
        request = CallRequest(name, is_function, chosen, pack_values([args, kwargs], strict=True))
        found: list[Any] = self._ask(Kind.CALL, pack_message(request))
        return found

    def stats(self) -> Stats:
        """What the connection has done so far."""
        return self._conversation.link.stats()

    def worker_states(self) -> list[WorkerState]:
        """The server, which alone knows of workers of its own."""
        where = str(self._target.address)
        reconnects = self.stats().reconnects
        return [WorkerState("server", range(self.num_envs), place=where, restarts=reconnects)]

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Have the server close the environments, and hang up; a second call does nothing.

        Args:
            terminate: Hang up at once; the server notices.
            timeout: Seconds that the server has.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if not terminate:
                seconds = _CLOSING if timeout is None else timeout
                self._conversation.say_farewell(Patience(seconds, may_grow=False))
        except (ConnectionError, ReceiveTimeoutError):
            return  # there is nobody any more who has something to close
        finally:
            self._conversation.end()

    def abandon(self) -> None:
        """Hang up, for a vector that is garbage and was not closed."""
        self.close(terminate=True)

    def forget(self) -> None:
        """Let go of the connection in a forked child, without ending it for the parent."""
        self._closed = True
        self._conversation.forget()

    # Parts

    def _ask(self, kind: Kind, meta: bytes) -> Any:
        return self._conversation.ask(kind, meta, self._patience(None))

    def _patience(self, timeout: float | None) -> Patience:
        """A caller's patience; one that says nothing has that of the vector."""
        if timeout is None:
            return Patience(self.timeout, may_grow=True)
        return Patience(timeout, may_grow=False)

    def _check_idle(self, slots: npt.NDArray[np.int64] | None, doing: str) -> None:
        self._check_open(doing)
        self._conversation.check_idle(slots)

    def _check_open(self, doing: str) -> None:
        if self._closed:
            raise ClosedEnvironmentError(f"{doing}: the vector environment is closed")


def each_deadline(deadlines: Deadlines, count: int) -> tuple[float, ...]:
    """The deadline of each of so many slots; nothing where there are none.

    Raises:
        ValueError: They are no numbers of seconds.
    """
    if deadlines is None:
        return ()
    try:
        each = np.asarray(deadlines, np.float64)
    except (TypeError, ValueError):
        each = np.array(np.nan)
    if each.shape not in ((), (count,)) or not (each > 0).all():
        raise ValueError(
            f"deadlines must be a positive number of seconds, or {count} of them, got {deadlines!r}"
        )
    each = np.broadcast_to(each, (count,))
    return tuple(each.tolist())
