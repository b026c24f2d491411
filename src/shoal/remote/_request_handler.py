"""The handler of a session: requests are read, worked on by the pool, and answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np

from shoal import _native
from shoal._spaces import Layout
from shoal._spaces.leaves import batch_leaves, batch_of_leaves
from shoal.errors import ProtocolError
from shoal.pools import Pool
from shoal.remote._channel import Channel
from shoal.remote._error_codec import failure_of
from shoal.remote._info_codec import pack_told
from shoal.remote._messages import (
    CallRequest,
    Expect,
    ResetRequest,
    StepRequest,
    pack_message,
    unpack_message,
)
from shoal.remote._rpc_allowlist import reached
from shoal.remote._segments import FLAGS, REWARDS, SLOTS, Segments, check_flags, checked_slots
from shoal.remote._slot_scheduler import Answer, Failed, SlotScheduler, Task
from shoal.remote._value_codec import pack_values, unpack_values
from shoal.remote._wire import SOME_SLOTS, WHOLE, Header, Kind

__all__ = ["RequestHandler", "Rules"]

_UNREADABLE = (TypeError, ValueError, LookupError, AttributeError, OverflowError)
"""What reading a request raises that is not what it must be."""

_COUNTED = (Kind.STEP, Kind.RESET)
"""Requests of which there may be so many in flight."""

UNSENT = "unsent"
"""The info by which is told, in the place of all others, that they were too many."""

_LONG = 0.1
"""Seconds from which on a step is worth an announcement."""


@dataclass(frozen=True)
class Rules:
    """What holds for all sessions of a server."""

    session_ttl: float
    max_inflight: int
    max_meta: int
    tells_tracebacks: bool


class RequestHandler:
    """Requests in, answers out.

    Args:
        pool: What is asked for.
        channel: To and from the client; its connection may change.
        rules: Of the server.
        may_block: Whether a step may keep the session from hearing its client.
    """

    def __init__(self, pool: Pool, channel: Channel, rules: Rules, *, may_block: bool) -> None:
        self._pool = pool
        self._channel = channel
        self._rules = rules
        # A device's calls last long: meanwhile its client must be heard, and may cancel.
        self._expected_duration = getattr(pool, "expected_duration", None)
        self._may_block = may_block and self._expected_duration is None
        self._scheduler = SlotScheduler(pool)
        self._observations = Layout.of(pool.spaces.single_observation)
        actions = Layout.of(pool.spaces.single_action, ordered_like=pool.spaces.action)
        self._requests = Segments(actions)
        self._answers = Segments(self._observations, (REWARDS, FLAGS, FLAGS))
        self._every_slot = np.arange(pool.num_envs)
        self._fast_path: _native.FastPathServer | None = None
        if self._may_block and not (channel.keeps or actions.objects or self._observations.objects):
            self._fast_path = _native.FastPathServer(
                actions.tree,
                self._observations.tree,
                pool.num_envs,
                step=Kind.STEP,
                batch=Kind.BATCH,
                whole=WHOLE,
            )
        self.is_closed = False
        """Whether the client has closed the vector, as it should."""

    @property
    def largest_request(self) -> int:
        """Bytes that a request may have, with what is not tensors."""
        return self._requests.bytes_of(self._pool.num_envs, SOME_SLOTS) + self._max_meta

    @property
    def largest_message(self) -> int:
        """Bytes of the tensors of a step of all slots, or of the answer to it."""
        return max(self._requests.row_bytes, self._answers.row_bytes) * self._pool.num_envs

    @property
    def is_busy(self) -> bool:
        """Whether the pool is at work."""
        return self._scheduler.is_busy

    def serve_fast_path(self, timeout: float) -> bool | None:
        """Wait for a step of all slots that is nothing but tensors, and answer it.

        Returns whether there was one; None when the time is over. Anything else that has come, or
        that is to be done, is for the ordinary way.
        """
        channel = self._channel
        transport = channel.transport
        if self._fast_path is None or not isinstance(transport, _native.Port):
            return False
        if not self._scheduler.is_even:
            return False
        asked = self._fast_path.receive(transport, channel.received, timeout)
        if not asked:
            return asked
        begun = time.perf_counter()
        number, actions = asked
        channel.received = number
        try:
            results = self._pool.step(actions)
        except Exception as error:
            self._fail(number, None, error)
            return True
        if self._fast_path.respond(transport, results, channel.sent + 1, number, _micros(begun)):
            channel.sent += 1
        else:
            self._send_batch(number, None, results, begun)
        return True

    def poll(self, timeout: float) -> bool:
        """Answer what is done, for which it waits so many seconds; whether there was something."""
        outcomes = list(self._scheduler.poll(timeout))
        for outcome in outcomes:
            self._tell(outcome)
        return bool(outcomes)

    def handle(self, header: Header) -> None:
        """Read the request that begins with this header, and answer it, or begin to work on it.

        Raises:
            ProtocolError: It is not what a request must be.
        """
        handle = self._HANDLERS.get(header.kind)
        if handle is None:
            raise ProtocolError(f"{header.kind.name} is no request")
        if not header.number and header.kind is not Kind.ALIVE:
            raise ProtocolError(f"{header.kind.name} has no number")
        if header.kind in _COUNTED and self._scheduler.count >= self._rules.max_inflight:
            raise ProtocolError(f"more than {self._rules.max_inflight} requests are in flight")
        if header.kind is not Kind.STEP and header.body:
            raise ProtocolError(f"{header.kind.name} has a body of {header.body} bytes")
        try:
            handle(self, header)
        except ProtocolError:
            raise
        except _UNREADABLE as error:
            raise ProtocolError(f"{header.kind.name} could not be read: {error!r}") from error

    def _step(self, header: Header) -> None:
        pool, channel = self._pool, self._channel
        self._requests.check(header, pool.num_envs)
        begun = time.perf_counter()
        meta = channel.read_meta(header, self._rules.max_meta)
        slots = self._every_slot
        arrays = self._requests.room(header.rows)
        buffers = list(arrays)
        if header.flags & SOME_SLOTS:
            slots = np.empty(header.rows, SLOTS)
            buffers.insert(0, slots)
        channel.read_into(buffers)
        check_flags(arrays)
        request = unpack_message(StepRequest, meta) if meta else StepRequest()
        if header.flags & SOME_SLOTS:
            checked_slots(slots, pool.num_envs)
        if len(request.deadlines) not in (0, header.rows):
            raise ProtocolError(f"there are {len(request.deadlines)} deadlines for {header.rows}")
        actions = self._actions(arrays, request)
        channel.complete(header)
        if (
            header.flags & WHOLE
            and not request.deadlines
            and self._may_block
            and self._scheduler.is_even
        ):
            self._step_all(header.number, actions, begun)
            return
        task = Task(header.number, slots, actions, begun=begun)
        if request.deadlines:
            now = time.monotonic()
            task.deadlines = [now + seconds for seconds in request.deadlines]
        try:
            announced = 0.0
            if self._expected_duration is not None:
                announced = self._expected_duration(task.slots, task.actions)
            self._scheduler.begin(task)
        except Exception as error:
            self._fail(header.number, None, error)
            return
        if announced >= _LONG:
            self._channel.send(Kind.EXPECT, pack_message(Expect(announced)), reply_to=task.number)

    def _step_all(self, number: int, actions: Any, begun: float) -> None:
        try:
            results = self._pool.step(actions)
        except Exception as error:
            self._fail(number, None, error)
        else:
            self._send_batch(number, None, results, begun)

    def _actions(self, arrays: list[Any], request: StepRequest) -> Any:
        objects: list[list[Any]] = []
        if request.extras:
            try:
                objects, others = unpack_values(request.extras)
                for place, given in others.items():
                    arrays[int(place)] = np.asarray(given)
            except (ValueError, TypeError, IndexError, AttributeError) as error:
                raise ProtocolError(f"actions could not be read: {error!r}") from error
        layout = self._requests.layout
        if len(objects) != len(layout.objects):
            raise ProtocolError("actions of no fixed shape are missing")
        return batch_of_leaves(layout, arrays, objects)

    def _reset(self, header: Header) -> None:
        request = unpack_message(ResetRequest, self._channel.read_meta(header, self._max_meta))
        seeds, options = unpack_values(request.values)
        slots = checked_slots(np.array(request.slots, SLOTS), self._pool.num_envs)
        task = Task(header.number, slots, seeds=list(seeds), options=options)
        self._channel.complete(header)
        try:
            self._scheduler.begin(task)
        except Exception as error:
            self._fail(header.number, None, error)

    def _call(self, header: Header) -> None:
        request = unpack_message(CallRequest, self._channel.read_meta(header, self._max_meta))
        args, kwargs = unpack_values(request.values)
        args, kwargs = tuple(args), dict(kwargs)
        slots = checked_slots(np.array(request.slots, SLOTS), self._pool.num_envs)
        self._channel.complete(header)
        begun = time.perf_counter()
        try:
            what = reached(request.what, request.is_function, args, kwargs)
            found = self._pool.call(what, *args, slots=slots, **kwargs)
        except Exception as error:
            self._fail(header.number, None, error)
        else:
            self._reply(header.number, found, begun)

    def _latest(self, header: Header) -> None:
        slots = self._told_slots(header)
        begun = time.perf_counter()
        try:
            found = self._pool.latest(slots)
        except Exception as error:
            self._fail(header.number, None, error)
        else:
            nothing = np.zeros(len(slots), np.bool_)
            results = found, np.zeros(len(slots)), nothing, nothing, None
            self._send_batch(header.number, slots, results, begun)

    def _cancel(self, header: Header) -> None:
        slots = self._told_slots(header)
        begun = time.perf_counter()
        try:
            answers = self._scheduler.cancel(slots.tolist())
        except Exception as error:
            self._fail(header.number, None, error)
            return
        for answer in answers:
            self._tell(answer)
        self._reply(header.number, None, begun)

    def _told_slots(self, header: Header) -> Any:
        told = unpack_values(self._channel.read_meta(header, self._max_meta))
        slots = checked_slots(np.array(list(told), SLOTS), self._pool.num_envs)
        self._channel.complete(header)
        return slots

    def _close(self, header: Header) -> None:
        self._channel.read_meta(header, 0)
        self._channel.complete(header)
        begun = time.perf_counter()
        self.is_closed = True
        try:
            self._pool.close()
        except Exception as error:
            self._fail(header.number, None, error)
        else:
            self._reply(header.number, None, begun)

    def _alive(self, header: Header) -> None:
        self._channel.read_meta(header, 0)
        self._channel.complete(header)

    _HANDLERS: ClassVar[dict[Kind, Callable[[RequestHandler, Header], None]]] = {
        Kind.STEP: _step,
        Kind.RESET: _reset,
        Kind.CALL: _call,
        Kind.LATEST: _latest,
        Kind.CANCEL: _cancel,
        Kind.CLOSE: _close,
        Kind.ALIVE: _alive,
    }

    @property
    def _max_meta(self) -> int:
        return self._rules.max_meta

    # Answers

    def _tell(self, outcome: Answer | Failed) -> None:
        task = outcome.task
        if isinstance(outcome, Failed):
            self._fail(task.number, outcome.slots, outcome.error)
        else:
            self._send_batch(task.number, outcome.batch.slots, outcome.batch[1:], task.begun)

    def _send_batch(self, reply_to: int, slots: Any, results: Any, begun: float) -> None:
        observations, rewards, terminated, truncated, infos = results
        arrays, objects = batch_leaves(self._observations, observations)
        flags = 0 if slots is None else SOME_SLOTS
        rows = len(rewards)
        try:
            columns = (rewards, terminated, truncated, *arrays)
            body = self._answers.made_of(columns, rows)
            told = pack_told(objects, infos)
            if len(told) > self._rules.max_meta:
                # The step was executed, and must be told of: so without its infos.
                lost = f"{len(told)} bytes of infos, {self._rules.max_meta} may be sent"
                told = pack_told(objects, ([(0, {UNSENT: lost})], None))
            if len(told) > self._rules.max_meta:
                raise ValueError(f"{len(told)} bytes, {self._rules.max_meta} may be sent")
        except Exception as error:  # the pool's mistake, which is told like its exceptions
            self._fail(reply_to, None if slots is None else slots.tolist(), error)
            return
        if slots is not None:
            body.insert(0, np.ascontiguousarray(slots, SLOTS))
        self._channel.send(
            Kind.BATCH,
            told,
            body,
            size=self._answers.bytes_of(rows, flags),
            flags=flags,
            rows=rows,
            micros=_micros(begun),
            reply_to=reply_to,
            lasting=self._pool.copy,
        )

    def _reply(self, reply_to: int, found: Any, begun: float) -> None:
        meta = pack_values(found)
        if len(meta) > self._rules.max_meta:
            error = ValueError(f"{len(meta)} bytes of results, {self._rules.max_meta} may be sent")
            self._fail(reply_to, None, error)
            return
        self._channel.send(Kind.REPLY, meta, micros=_micros(begun), reply_to=reply_to)

    def _fail(self, reply_to: int, slots: list[int] | None, error: BaseException) -> None:
        told = failure_of(error, tells_traceback=self._rules.tells_tracebacks)
        concerned = None if slots is None else tuple(slots)
        failure = msgspec.structs.replace(told, slots=concerned)
        meta = pack_message(failure)
        if len(meta) > self._max_meta:
            short = msgspec.structs.replace(
                failure, message=told.message[: self._max_meta // 8], notes=(), traceback=""
            )
            meta = pack_message(short)
        self._channel.send(Kind.FAILURE, meta, reply_to=reply_to)


def _micros(begun: float) -> int:
    return min(int((time.perf_counter() - begun) * 1e6), 0xFFFFFFFF)
