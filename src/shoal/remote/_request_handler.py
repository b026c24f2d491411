"""The server's handler of requests: read, execute on the pool, respond."""

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
from shoal.remote._batch_meta import pack_batch_meta
from shoal.remote._body_format import (
    BOOL_DTYPE,
    REWARD_DTYPE,
    SLOT_DTYPE,
    BodyFormat,
    check_booleans,
    check_slots,
)
from shoal.remote._channel import Channel
from shoal.remote._error_codec import encode_error
from shoal.remote._messages import (
    CallRequest,
    ExpectedDuration,
    ResetRequest,
    StepRequest,
    pack_message,
    unpack_message,
)
from shoal.remote._rpc_allowlist import resolve_call
from shoal.remote._slot_scheduler import Completed, Failed, SlotScheduler, Task
from shoal.remote._value_codec import pack_values, unpack_values
from shoal.remote._wire import SOME_SLOTS, WHOLE, Header, Kind

__all__ = ["RequestHandler", "SessionOptions"]

_DECODE_ERRORS = (TypeError, ValueError, LookupError, AttributeError, OverflowError)
"""Exceptions that decoding an invalid request may raise."""

_LIMITED = (Kind.STEP, Kind.RESET)
"""Requests that count towards ``max_inflight``."""

UNSENT = "unsent"
"""The key of the info that replaces all infos of a batch if they are too large."""

_MIN_EXPECTED_DURATION = 0.1
"""Shorter expected durations in seconds are not sent to the client."""


@dataclass(frozen=True)
class SessionOptions:
    """Options of all sessions of a server; :func:`shoal.serve` documents them."""

    session_ttl: float
    max_inflight: int
    max_meta: int
    sends_tracebacks: bool


class RequestHandler:
    """Reads requests from a channel, executes them on a pool, and sends responses.

    Args:
        pool: The pool.
        channel: The channel to the client; its connection may change.
        options: The options of the session.
        may_block: Whether a step may block the session's thread, which then receives nothing.
    """

    def __init__(
        self, pool: Pool, channel: Channel, options: SessionOptions, *, may_block: bool
    ) -> None:
        self._pool = pool
        self._channel = channel
        self._options = options
        # Calls of a device are long: heartbeats and cancellations must be received meanwhile.
        self._expected_duration = getattr(pool, "expected_duration", None)
        self._may_block = may_block and self._expected_duration is None
        self._scheduler = SlotScheduler(pool)
        self._observations = Layout.of(pool.spaces.single_observation)
        actions = Layout.of(pool.spaces.single_action, ordered_like=pool.spaces.action)
        self._request_format = BodyFormat(actions)
        self._batch_format = BodyFormat(self._observations, (REWARD_DTYPE, BOOL_DTYPE, BOOL_DTYPE))
        self._all_slots = np.arange(pool.num_envs)
        self._fast_path: _native.FastPathServer | None = None
        has_objects = bool(actions.objects or self._observations.objects)
        if self._may_block and not channel.retransmits and not has_objects:
            self._fast_path = _native.FastPathServer(
                actions.tree,
                self._observations.tree,
                pool.num_envs,
                step=Kind.STEP,
                batch=Kind.BATCH,
                whole=WHOLE,
            )
        self.is_closed = False
        """Whether the client has closed the vector."""

    @property
    def max_request(self) -> int:
        """Largest request in bytes."""
        return self._request_format.size_of(self._pool.num_envs, SOME_SLOTS) + self._max_meta

    @property
    def step_bytes(self) -> int:
        """Bytes of tensors in a step request of all slots, or in its response if that has more."""
        row_bytes = max(self._request_format.row_bytes, self._batch_format.row_bytes)
        return row_bytes * self._pool.num_envs

    @property
    def is_busy(self) -> bool:
        """Whether the pool is working."""
        return self._scheduler.is_busy

    def serve_fast_path(self, timeout: float) -> bool | None:
        """Wait for a step of all slots that consists of tensors only, and respond.

        Returns:
            True after such a step, None after the timeout, and False if the next request or the
            state of the slots needs the general path.
        """
        channel = self._channel
        transport = channel.transport
        if self._fast_path is None or not isinstance(transport, _native.Port):
            return False
        if not self._scheduler.is_uniform:
            return False
        request = self._fast_path.receive(transport, channel.received, timeout)
        if not request:
            return request
        start = time.perf_counter()
        number, actions = request
        channel.received = number
        try:
            results = self._pool.step(actions)
        except Exception as error:
            self._send_failure(number, None, error)
            return True
        next_number = channel.sent + 1
        if self._fast_path.respond(transport, results, next_number, number, _micros(start)):
            channel.sent = next_number
        else:
            self._send_batch(number, None, results, start)
        return True

    def poll(self, timeout: float) -> bool:
        """Wait for results of the pool and send them; return whether there were any."""
        outcomes = list(self._scheduler.poll(timeout))
        for outcome in outcomes:
            self._send_outcome(outcome)
        return bool(outcomes)

    def handle(self, header: Header) -> None:
        """Read the request after this header, and execute it or start to.

        Raises:
            ProtocolError: The request is invalid.
        """
        handle = self._HANDLERS.get(header.kind)
        if handle is None:
            raise ProtocolError(f"{header.kind.name} is not a request")
        if not header.number and header.kind is not Kind.HEARTBEAT:
            raise ProtocolError(f"{header.kind.name} has no sequence number")
        if header.kind in _LIMITED and self._scheduler.count >= self._options.max_inflight:
            raise ProtocolError(f"more than {self._options.max_inflight} requests are in flight")
        if header.kind is not Kind.STEP and header.body:
            raise ProtocolError(f"{header.kind.name} has a body of {header.body} bytes")
        try:
            handle(self, header)
        except ProtocolError:
            raise
        except _DECODE_ERRORS as error:
            raise ProtocolError(f"invalid {header.kind.name} request: {error!r}") from error

    def _step(self, header: Header) -> None:
        pool, channel = self._pool, self._channel
        self._request_format.check_header(header, pool.num_envs)
        start = time.perf_counter()
        meta = channel.read_meta(header, self._max_meta)
        slots = self._all_slots
        arrays = self._request_format.allocate(header.rows)
        buffers = list(arrays)
        if header.flags & SOME_SLOTS:
            slots = np.empty(header.rows, SLOT_DTYPE)
            buffers.insert(0, slots)
        channel.read_into(buffers)
        check_booleans(arrays)
        request = unpack_message(StepRequest, meta) if meta else StepRequest()
        if header.flags & SOME_SLOTS:
            check_slots(slots, pool.num_envs)
        if len(request.deadlines) not in (0, header.rows):
            raise ProtocolError(f"got {len(request.deadlines)} deadlines for {header.rows} slots")
        actions = self._actions(arrays, request)
        channel.complete(header)
        if (
            header.flags & WHOLE
            and not request.deadlines
            and self._may_block
            and self._scheduler.is_uniform
        ):
            self._step_all(header.number, actions, start)
            return
        task = Task(header.number, slots, actions, started=start)
        if request.deadlines:
            now = time.monotonic()
            task.deadlines = [now + seconds for seconds in request.deadlines]
        try:
            expected = 0.0
            if self._expected_duration is not None:
                expected = self._expected_duration(task.slots, task.actions)
            self._scheduler.start(task)
        except Exception as error:
            self._send_failure(header.number, None, error)
            return
        if expected >= _MIN_EXPECTED_DURATION:
            message = pack_message(ExpectedDuration(expected))
            self._channel.send(Kind.EXPECTED_DURATION, message, reply_to=task.number)

    def _step_all(self, number: int, actions: Any, start: float) -> None:
        try:
            results = self._pool.step(actions)
        except Exception as error:
            self._send_failure(number, None, error)
        else:
            self._send_batch(number, None, results, start)

    def _actions(self, arrays: list[Any], request: StepRequest) -> Any:
        objects: list[list[Any]] = []
        if request.extras:
            try:
                objects, other_dtypes = unpack_values(request.extras)
                for leaf, values in other_dtypes.items():
                    arrays[int(leaf)] = np.asarray(values)
            except (ValueError, TypeError, IndexError, AttributeError) as error:
                raise ProtocolError(f"invalid actions: {error!r}") from error
        layout = self._request_format.layout
        if len(objects) != len(layout.objects):
            raise ProtocolError("the parts of actions without fixed shape are missing")
        return batch_of_leaves(layout, arrays, objects)

    def _reset(self, header: Header) -> None:
        request = unpack_message(ResetRequest, self._channel.read_meta(header, self._max_meta))
        seeds, options = unpack_values(request.values)
        slots = check_slots(np.array(request.slots, SLOT_DTYPE), self._pool.num_envs)
        task = Task(header.number, slots, seeds=list(seeds), options=options)
        self._channel.complete(header)
        try:
            self._scheduler.start(task)
        except Exception as error:
            self._send_failure(header.number, None, error)

    def _call(self, header: Header) -> None:
        request = unpack_message(CallRequest, self._channel.read_meta(header, self._max_meta))
        args, kwargs = unpack_values(request.values)
        args, kwargs = tuple(args), dict(kwargs)
        slots = check_slots(np.array(request.slots, SLOT_DTYPE), self._pool.num_envs)
        self._channel.complete(header)
        start = time.perf_counter()
        try:
            what = resolve_call(request.what, request.is_function, args, kwargs)
            results = self._pool.call(what, *args, slots=slots, **kwargs)
        except Exception as error:
            self._send_failure(header.number, None, error)
        else:
            self._send_reply(header.number, results, start)

    def _latest(self, header: Header) -> None:
        slots = self._read_slots(header)
        start = time.perf_counter()
        try:
            observations = self._pool.latest(slots)
        except Exception as error:
            self._send_failure(header.number, None, error)
        else:
            false = np.zeros(len(slots), np.bool_)
            results = observations, np.zeros(len(slots)), false, false, None
            self._send_batch(header.number, slots, results, start)

    def _cancel(self, header: Header) -> None:
        slots = self._read_slots(header)
        start = time.perf_counter()
        try:
            outcomes = self._scheduler.cancel(slots.tolist())
        except Exception as error:
            self._send_failure(header.number, None, error)
            return
        for outcome in outcomes:
            self._send_outcome(outcome)
        self._send_reply(header.number, None, start)

    def _read_slots(self, header: Header) -> Any:
        numbers = unpack_values(self._channel.read_meta(header, self._max_meta))
        slots = check_slots(np.array(list(numbers), SLOT_DTYPE), self._pool.num_envs)
        self._channel.complete(header)
        return slots

    def _close(self, header: Header) -> None:
        self._channel.read_meta(header, 0)
        self._channel.complete(header)
        start = time.perf_counter()
        self.is_closed = True
        try:
            self._pool.close()
        except Exception as error:
            self._send_failure(header.number, None, error)
        else:
            self._send_reply(header.number, None, start)

    def _heartbeat(self, header: Header) -> None:
        self._channel.read_meta(header, 0)
        self._channel.complete(header)

    _HANDLERS: ClassVar[dict[Kind, Callable[[RequestHandler, Header], None]]] = {
        Kind.STEP: _step,
        Kind.RESET: _reset,
        Kind.CALL: _call,
        Kind.LATEST: _latest,
        Kind.CANCEL: _cancel,
        Kind.CLOSE: _close,
        Kind.HEARTBEAT: _heartbeat,
    }

    @property
    def _max_meta(self) -> int:
        return self._options.max_meta

    # Responses

    def _send_outcome(self, outcome: Completed | Failed) -> None:
        task = outcome.task
        if isinstance(outcome, Failed):
            self._send_failure(task.number, outcome.slots, outcome.error)
        else:
            self._send_batch(task.number, outcome.batch.slots, outcome.batch[1:], task.started)

    def _send_batch(self, reply_to: int, slots: Any, results: Any, start: float) -> None:
        observations, rewards, terminated, truncated, infos = results
        arrays, objects = batch_leaves(self._observations, observations)
        flags = 0 if slots is None else SOME_SLOTS
        rows = len(rewards)
        limit = self._max_meta
        try:
            columns = (rewards, terminated, truncated, *arrays)
            body = self._batch_format.to_columns(columns, rows)
            meta = pack_batch_meta(objects, infos)
            if len(meta) > limit:
                # The step was executed, so its results are sent without the infos.
                reason = f"the infos have {len(meta)} bytes, but at most {limit} can be sent"
                meta = pack_batch_meta(objects, ([(0, {UNSENT: reason})], None))
            if len(meta) > limit:
                raise ValueError(
                    f"the observations have {len(meta)} bytes without fixed shape, but at most "
                    f"{limit} can be sent"
                )
        except Exception as error:  # the pool has returned invalid results
            self._send_failure(reply_to, None if slots is None else slots.tolist(), error)
            return
        if slots is not None:
            body.insert(0, np.ascontiguousarray(slots, SLOT_DTYPE))
        self._channel.send(
            Kind.BATCH,
            meta,
            body,
            size=self._batch_format.size_of(rows, flags),
            flags=flags,
            rows=rows,
            micros=_micros(start),
            reply_to=reply_to,
            is_immutable=self._pool.copy,
        )

    def _send_reply(self, reply_to: int, result: Any, start: float) -> None:
        meta = pack_values(result)
        if len(meta) > self._max_meta:
            error = ValueError(
                f"the results have {len(meta)} bytes, but at most {self._max_meta} can be sent"
            )
            self._send_failure(reply_to, None, error)
            return
        self._channel.send(Kind.REPLY, meta, micros=_micros(start), reply_to=reply_to)

    def _send_failure(self, reply_to: int, slots: list[int] | None, error: BaseException) -> None:
        encoded = encode_error(error, with_traceback=self._options.sends_tracebacks)
        failed_slots = None if slots is None else tuple(slots)
        failure = msgspec.structs.replace(encoded, slots=failed_slots)
        meta = pack_message(failure)
        if len(meta) > self._max_meta:
            short = msgspec.structs.replace(
                failure, message=encoded.message[: self._max_meta // 8], notes=(), traceback=""
            )
            meta = pack_message(short)
        self._channel.send(Kind.FAILURE, meta, reply_to=reply_to)


def _micros(start: float) -> int:
    return min(int((time.perf_counter() - start) * 1e6), 0xFFFFFFFF)
