"""What a client has asked of its server, and what has come: slots in flight, replies, losses."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from shoal import _native
from shoal._spaces import Layout
from shoal._types import ColumnInfos, Results
from shoal.errors import (
    ConnectionLostError,
    ProtocolError,
    ReceiveTimeoutError,
    SessionLostError,
)
from shoal.pools._arrivals import Arrivals
from shoal.pools._base import Batch
from shoal.pools._restarts import RestartTracker
from shoal.remote._answers import AnswerReader
from shoal.remote._deadline import Patience
from shoal.remote._device import STATUS, Status
from shoal.remote._error_codec import raised_failure
from shoal.remote._link import Link
from shoal.remote._messages import (
    Expect,
    Failure,
    ResetRequest,
    pack_message,
    unpack_message,
)
from shoal.remote._value_codec import pack_values, unpack_values
from shoal.remote._wire import SOME_SLOTS, Header, Kind

__all__ = ["Conversation"]

_NOTHING: Mapping[str, Any] = {}

_EXCUSED = (Status.NOT_EXECUTED, Status.TIMEOUT)
"""Of a slot with one of these, nothing new is known, nor whether its episode has ended."""


class Conversation:
    """Requests, and what becomes of them.

    An interrupt may come between any two lines: what is sent is noted before it is sent, and what
    has come is noted before it counts as received.

    Args:
        link: To the server; after a lost session it is replaced by a new one.
        space: Of one slot's observations.
        layout: Of the same.
        num_envs: Number of slots.
        autoreset_mode: Of the server's slots.
        finished: Which slots have ended their episodes; written here, read by those who check
            actions.
        fast_path: The fast path, where there is one.
        restarts: Whether a new session takes the place of a lost one.
    """

    def __init__(
        self,
        link: Link,
        space: spaces.Space[Any],
        layout: Layout,
        num_envs: int,
        autoreset_mode: AutoresetMode,
        finished: npt.NDArray[np.bool_],
        fast_path: _native.FastPathClient | None,
        *,
        restarts: bool,
    ) -> None:
        self.link = link
        self._space = space
        self._layout = layout
        self._num_envs = num_envs
        self._autoreset_mode = autoreset_mode
        self._finished = finished
        self._fast_path = fast_path
        self._restarts = restarts
        self._reader = AnswerReader(layout, num_envs)
        link.expect_at_most(self._reader.largest)
        # What slots have shown last, for infos that must tell it if they are lost.
        self._shown: dict[int, Any] = {}
        self._forget_all()

    def _forget_all(self) -> None:
        self.arrivals = Arrivals(self._layout)
        self.restarts = RestartTracker()
        self._round: int | None = None  # the number of a step of all slots
        self._round_results: Results | None = None
        self._noted = 0  # the newest request of the fast path that needs no catching up
        self._replies: dict[int, Any] = {}
        self._sent_at: dict[int, float] = {}
        self._expected: dict[int, float] = {}
        self._latest_asked: set[int] = set()
        self._finished[:] = False

    def say_farewell(self, patience: Patience) -> None:
        """Have the server close its environments."""
        self.link.leave()
        self._restarts = False
        self.ask(Kind.CLOSE, b"", patience)

    def end(self) -> None:
        """Hang up, and let go of the memory that is shared; a second call does nothing."""
        self._fast_path = None
        self.link.close()

    def forget(self) -> None:
        """Let go of the connection in a forked child, without ending it for the parent."""
        self._fast_path = None
        self.link.forget()

    # What is in flight

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        return self._num_envs if self.is_in_round else len(self.arrivals.flying)

    @property
    def is_in_round(self) -> bool:
        """Whether a step of all slots is in flight, as one."""
        if self._fast_path is not None and self._fast_path.last_request != self._noted:
            self._catch_up(self._fast_path)
        return self._round is not None

    @property
    def unanswered(self) -> int:
        """How many requests have not been answered in full."""
        return len(self._sent_at)

    def check_idle(self, slots: npt.NDArray[np.int64] | None) -> None:
        """Refuse to ask something of slots, or of all, that are in flight."""
        self._check_session()
        flying = self.arrivals.flying
        if self.is_in_round:
            busy: int | None = 0
        elif not flying:
            return
        elif slots is None:
            busy = next(iter(flying))
        else:
            busy = next((slot for slot in slots.tolist() if slot in flying), None)
        if busy is not None:
            raise AlreadyPendingCallError(
                f"slot {busy} is in flight already: receive it before sending it again", "recv"
            )

    def _check_session(self) -> None:
        """Raise what has ended the session, unless another one takes its place."""
        self._go_on_reviving()
        try:
            self.link.check()
        except SessionLostError:
            if not self._restarts:
                raise
            self._begin_anew()

    # Asking

    def step_fast(self, actions: Any) -> Results | Literal[False] | None:
        """Step all slots in the shortest way; see :class:`FastPathClient`."""
        if self._fast_path is None:
            return None
        results = self.link.step_fast(self._fast_path, actions)
        if results:
            self._noted = self._fast_path.last_request
        return results

    def _catch_up(self, fast_path: _native.FastPathClient) -> None:
        """Take over a step of the fast path that was not answered, or not delivered."""
        self.link.catch_up(fast_path)
        self._round = fast_path.last_request
        self._sent_at[self._round] = time.perf_counter()
        if fast_path.last_answered == fast_path.last_request:
            self._round_results = fast_path.results
            self._settle(self._round)
        self._noted = fast_path.last_request

    def request(
        self,
        kind: Kind,
        meta: bytes = b"",
        body: Sequence[Any] = (),
        slots: npt.NDArray[np.int64] | None = None,
        is_round: bool = False,
        **header: Any,
    ) -> int:
        """Send a request, for some slots or for a round of all, and return its number."""
        self._go_on_reviving()
        return self._send(kind, meta, body, slots, is_round, header)

    def _send(
        self,
        kind: Kind,
        meta: bytes,
        body: Sequence[Any] = (),
        slots: npt.NDArray[np.int64] | None = None,
        is_round: bool = False,
        header: Mapping[str, Any] = _NOTHING,
    ) -> int:
        number = self.link.newest + 1
        welcome = self.link.welcome
        if len(meta) > welcome.max_meta:
            raise ValueError(
                f"{len(meta)} bytes of arguments or options, the server takes {welcome.max_meta}"
            )
        if kind in (Kind.STEP, Kind.RESET) and self.unanswered >= welcome.max_inflight:
            raise AlreadyPendingCallError(
                f"{self.unanswered} requests are in flight, the server takes "
                f"{welcome.max_inflight}",
                "recv",
            )
        try:
            self._sent_at[number] = time.perf_counter()
            if slots is not None:
                self.arrivals.expect(slots.tolist(), number)
            if is_round:
                self._round = number
                self._round_results = None
            if kind is Kind.LATEST:
                self._latest_asked.add(number)
            self.link.send(kind, meta, body, **header)
        finally:
            if self.link.newest < number:
                self._withdraw(number)
        return number

    def _withdraw(self, number: int) -> None:
        """A request was not sent after all."""
        self._settle(number)
        self._latest_asked.discard(number)
        self.arrivals.withdraw(number)
        if self._round == number:
            self._round = None

    def ask(self, kind: Kind, meta: bytes, patience: Patience) -> Any:
        """Send a request, and wait for the reply to it."""
        self._check_session()
        number = self.request(kind, meta)
        try:
            self.pump(lambda: number in self._replies, patience)
        except ReceiveTimeoutError:
            self._settle(number)  # when it comes, it is dropped
            raise
        found = self._replies.pop(number)
        if isinstance(found, BaseException):
            raise found
        return found

    def tell_losses(self, slots: Iterable[int]) -> None:
        """Slots that have lost their environments were sent: their loss is what they answer."""
        told = list(slots)
        self.arrivals.expect(told, self.restarts.number)
        self.arrivals.done.update(self.restarts.told(told))

    # Waiting

    def await_round(self, patience: Patience) -> Results:
        """Wait for a step of all slots; what some of them have failed of costs the others' rows."""
        self.pump(self._has_round, patience)
        if self._round is None:
            try:
                return self.arrivals.take(range(self._num_envs))[1:]
            finally:
                self.arrivals.clear()
        results, self._round_results, self._round = self._round_results, None, None
        assert results is not None
        return results

    def _has_round(self) -> bool:
        return self._round_results is not None or (
            self._round is None and len(self.arrivals.done) == self._num_envs
        )

    @property
    def announced(self) -> float:
        """Seconds that the server has announced to need for what is in flight."""
        return max(self._expected.values(), default=0.0)

    def pump(self, is_done: Callable[[], bool], patience: Patience) -> None:
        """Take messages until it is done."""
        if is_done():
            return
        self._go_on_reviving()
        while True:
            try:
                with self.link.receiving:
                    header = self.link.next_header(patience.left(self.announced))
                    if header is None:
                        raise ReceiveTimeoutError(
                            f"{self.link.target.address} has not answered within "
                            f"{patience.seconds} seconds; what is in flight can still be received"
                        )
                    self._take(header)
            except ConnectionLostError as error:
                self._recover(error)
            except ReceiveTimeoutError:
                raise
            except ProtocolError as error:
                self.link.give_up(error)
                raise
            except BaseException:
                self.link.tear()  # it was interrupted
                raise
            if is_done():
                return

    # Losses

    def _recover(self, error: ConnectionLostError) -> None:
        """After a loss: go on with the session, or, where that was asked for, with a new one."""
        if not self.link.is_over:
            self.link.lose(error)
        elif isinstance(error, SessionLostError) and self._restarts:
            self._begin_anew()
        else:
            raise error

    def _begin_anew(self) -> None:
        """Begin a new session, whose slots come back reset and tell of the loss once each."""
        flying, done = dict(self.arrivals.flying), dict(self.arrivals.done)
        if self.is_in_round:
            flying = dict.fromkeys(range(self._num_envs), 0)
        slots = [number for number in (*self.arrivals.flying.values(), self._round) if number]
        calls = [number for number in self._sent_at if number not in slots]
        self.link = self.link.renewed()
        self._forget_all()
        address = self.link.target.address
        error = SessionLostError(f"{address}: the session was lost during a call")
        self._replies = dict.fromkeys(calls, error)
        self.restarts = RestartTracker(self.link.newest + 1, range(self._num_envs))
        self.arrivals.expect(flying, self.restarts.number)
        self.arrivals.done = done
        self._revive()

    def _go_on_reviving(self) -> None:
        """Reset the slots of a new session if an interrupt has come before that."""
        if self.restarts.is_of(self.link.newest + 1):
            self._revive()

    def _revive(self) -> None:
        values = pack_values([[None] * self._num_envs, None])
        request = ResetRequest(tuple(range(self._num_envs)), values)
        self._send(Kind.RESET, pack_message(request))

    # What comes

    def _take(self, header: Header) -> None:
        handle = _TAKERS.get(header.kind)
        if handle is None or not header.number:
            raise ProtocolError(f"{header.kind.name} with number {header.number} is no answer")
        handle(self, header)

    def _answered(self, header: Header) -> None:
        """Note that an answer has come; a request may have several."""
        begun = self._sent_at.get(header.reply_to)
        if begun is not None:
            self.link.timed(time.perf_counter() - begun, header)

    def _settle(self, number: int) -> None:
        """A request has been answered in full."""
        self._sent_at.pop(number, None)
        self._expected.pop(number, None)

    def _settle_if_done(self, number: int) -> None:
        if self.arrivals.is_complete(number):
            self._settle(number)

    def _take_batch(self, header: Header) -> None:
        batch = self._reader.read(self.link, header)
        reply_to = header.reply_to
        self._answered(header)
        if reply_to in self._latest_asked:
            self._latest_asked.discard(reply_to)
            if reply_to in self._sent_at:
                self._replies[reply_to] = batch.observations
                self._settle(reply_to)
        else:
            if reply_to == self._round and not header.flags & SOME_SLOTS:
                self._settle(reply_to)
                self._round_results = batch[1:]
            else:
                self._take_some(reply_to, batch)
            self._note(batch)
        self.link.complete(header)

    def _note(self, batch: Batch) -> None:
        """Note what later requests depend on."""
        if self._autoreset_mode is not AutoresetMode.SAME_STEP:
            self._note_endings(batch)
        elif self._restarts:
            space = batch_space(self._space, len(batch.slots))
            rows = deepcopy(list(iterate(space, batch.observations)))
            self._shown.update(zip(batch.slots.tolist(), rows, strict=True))

    def _note_endings(self, batch: Batch) -> None:
        slots, infos = batch.slots, batch.infos
        ended = np.logical_or(batch.terminated, batch.truncated)
        if infos is not None and not isinstance(infos, ColumnInfos):
            for row, info in infos[0]:
                if info.get(STATUS) in _EXCUSED:
                    ended[row] = self._finished[slots[row]]
        self._finished[slots] = ended

    def _take_some(self, reply_to: int, batch: Batch) -> None:
        if reply_to == self._round:
            self._take_apart()
        if self.restarts.is_of(reply_to):
            waited_for = self.arrivals.missing()
            batch = self.restarts.begun(batch, waited_for, self._shown, self._autoreset_mode)
        self.arrivals.add(reply_to, batch)
        self._settle_if_done(reply_to)

    def _take_apart(self) -> None:
        """A step of all slots is answered slot by slot: go on as if they had been sent so."""
        assert self._round is not None
        self.arrivals.expect(range(self._num_envs), self._round)
        self._round = None

    def _take_reply(self, header: Header) -> None:
        found = unpack_values(self.link.read_meta(header))
        if header.reply_to in self._sent_at:
            self._answered(header)
            self._replies[header.reply_to] = found
            self._settle(header.reply_to)
        self.link.complete(header)

    def _take_failure(self, header: Header) -> None:
        failure = unpack_message(Failure, self.link.read_meta(header))
        self._answered(header)
        error = raised_failure(failure)
        number = header.reply_to
        if number == self._round:
            self._take_apart()
        if self.arrivals.fail(number, failure.slots, error):
            self._settle_if_done(number)
        elif number in self._sent_at:
            self._replies[number] = error
            self._settle(number)
        self.link.complete(header)

    def _take_expectation(self, header: Header) -> None:
        expect = unpack_message(Expect, self.link.read_meta(header))
        if not math.isfinite(expect.seconds):
            raise ProtocolError(f"a request is announced to take {expect.seconds} seconds")
        if header.reply_to in self._sent_at:
            self._expected[header.reply_to] = expect.seconds
        self.link.complete(header)


_TAKERS: dict[Kind, Callable[[Conversation, Header], None]] = {
    Kind.BATCH: Conversation._take_batch,
    Kind.REPLY: Conversation._take_reply,
    Kind.FAILURE: Conversation._take_failure,
    Kind.EXPECT: Conversation._take_expectation,
}
