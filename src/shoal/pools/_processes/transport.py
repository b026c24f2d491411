"""The worker processes of a pool: started together, supervised and ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import cloudpickle

from shoal.errors import FactoryPicklingError, ReceiveTimeoutError, WorkerCrashedError
from shoal.pools._messages import Closed, Message
from shoal.pools._processes.env_recipe import BuildResult, Recipe, UnpackResult, pack_recipe
from shoal.pools._processes.mailbox import MessageSocket, dumps, loads
from shoal.pools._processes.process_start import Process, StartMethod, kill, start_process
from shoal.pools._processes.worker_main import Attachment

__all__ = ["ProcessTransport"]

_DISCONNECTED = (BrokenPipeError, ConnectionResetError, EOFError)
"""What a socket raises after the other process has ended."""

_TICK = 0.01
_GRACE = 5.0
"""Seconds that a worker has to exit after it has closed its environments or its socket."""


@dataclass
class _WorkerProcess:
    process: Process
    socket: MessageSocket


class ProcessTransport:
    """Worker processes, by number.

    Args:
        recipes: What each worker builds.
        start: How processes are started.
    """

    can_be_killed = True

    def __init__(self, recipes: Sequence[Recipe], start: StartMethod) -> None:
        self._recipes = recipes
        self._start_method = start
        packed = [self._pack_recipe(recipe) for recipe in recipes]
        self._workers: list[_WorkerProcess] = []
        try:
            for recipe, packed_recipe in zip(recipes, packed, strict=True):
                self._workers.append(self._start_worker(recipe, packed_recipe))
        except BaseException:
            self.kill()
            raise

    def _pack_recipe(self, recipe: Recipe) -> bytes | None:
        """Pickle a recipe; None if the worker is forked and inherits it."""
        return None if self._start_method == "fork" else pack_recipe(recipe)

    def _start_worker(self, recipe: Recipe, packed_recipe: bytes | None) -> _WorkerProcess:
        forked = recipe if self._start_method == "fork" else None
        worker = _WorkerProcess(*start_process(self._start_method, recipe.threads, forked))
        if packed_recipe is not None:
            # If it does not arrive, the missing answer reports the failure.
            with suppress(*_DISCONNECTED):
                worker.socket.send(packed_recipe, lambda: _check_alive(worker, "starting"))
        return worker

    def wait_until_started(self) -> None:
        """Wait until every worker runs and has unpickled its recipe."""
        for worker in range(len(self._workers)):
            self._wait_until_started(worker)

    def _wait_until_started(self, worker: int) -> None:
        unpacked = self._receive_answer(worker)
        assert isinstance(unpacked, UnpackResult)
        if unpacked.error is not None:
            raise FactoryPicklingError(
                "a worker process cannot unpickle the functions that make the environments "
                f"({unpacked.error!r}). Everything they use must be importable there, or be "
                "defined in the main module; or use start='fork' or backend='thread'."
            ) from unpacked.error

    def wait_until_built(self) -> list[BuildResult]:
        """Wait until every worker has built its environments; raise if one has failed."""
        return [self._wait_until_built(worker) for worker in range(len(self._workers))]

    def _wait_until_built(self, worker: int) -> BuildResult:
        result = self._receive_answer(worker)
        assert isinstance(result, BuildResult)
        if result.error is not None:
            raise result.error
        return result

    def _receive_answer(self, number: int) -> Any:
        worker = self._workers[number]
        while True:
            try:
                packed = worker.socket.receive(_TICK)
            except _DISCONNECTED:
                worker.process.wait(_GRACE)
                raise WorkerCrashedError(
                    f"worker {number} {_describe_exit(worker.process)} while building its "
                    "environments"
                ) from None
            if packed is not None:
                return loads(packed)

    def attach(self, worker: int, attachment: Attachment, descriptors: list[int]) -> None:
        """Send a worker the pool's memory; it starts to work."""
        socket = self._workers[worker].socket
        socket.send_descriptors(descriptors)
        socket.send(bytes(cloudpickle.dumps(attachment)))

    def replace(self, worker: int) -> BuildResult:
        """Kill a worker, start another one in its place, and wait until it is built."""
        lost = self._workers[worker]
        kill(lost.process)
        lost.process.wait(None)
        lost.socket.close()
        recipe = self._recipes[worker]
        self._workers[worker] = self._start_worker(recipe, self._pack_recipe(recipe))
        self._wait_until_started(worker)
        return self._wait_until_built(worker)

    def pack(self, message: Message) -> bytes:
        """Make a message ready to send."""
        return dumps(message, by_value=True)

    def send(self, worker: int, packed: bytes, timeout: float | None = None) -> None:
        """Send a message; if the worker is lost, this returns without an error."""
        receiver = self._workers[worker]
        deadline = None if timeout is None else time.monotonic() + timeout

        def check() -> None:
            _check_alive(receiver, "working")
            if deadline is not None and time.monotonic() > deadline:
                raise ReceiveTimeoutError(f"worker {worker} did not read a message in time")

        try:
            receiver.socket.send(packed, check)
        except (*_DISCONNECTED, WorkerCrashedError):
            receiver.process.wait(_GRACE)

    def receive(self, worker: int, seconds: float) -> Message | None:
        """Return the oldest message of a worker, or None if none arrives in time."""
        try:
            packed = self._workers[worker].socket.peek(seconds)
        except _DISCONNECTED:
            time.sleep(min(seconds, _TICK))
            return None
        if packed is None:
            return None
        message: Message = loads(packed)
        return message

    def discard_received(self, worker: int) -> None:
        """Discard the message of a worker that was received."""
        self._workers[worker].socket.discard_received()

    def lost(self) -> list[int]:
        """Return the workers whose process has ended."""
        return [
            number
            for number, worker in enumerate(self._workers)
            if worker.process.exit_code() is not None
        ]

    def pid(self, worker: int) -> int:
        """Return the process id of a worker."""
        return self._workers[worker].process.pid

    def location(self, worker: int) -> tuple[int | None, int | None]:
        """Return (process id, None)."""
        return self.pid(worker), None

    def describe_exit(self, worker: int) -> str:
        """Describe how the process of a worker has ended."""
        return _describe_exit(self._workers[worker].process)

    def kill(self, worker: int | None = None) -> None:
        """Kill one worker, or all, and wait until it has ended."""
        chosen = self._workers if worker is None else [self._workers[worker]]
        for each in chosen:
            kill(each.process)
        for each in chosen:
            each.process.wait(None)
            if worker is None:
                each.socket.close()

    def end(self, terminate: bool, timeout: float | None) -> BaseException | None:
        """Wait for workers that were sent ``Close``, and kill those that are not done in time.

        Returns:
            The first exception that closing an environment has raised.
        """
        failure: BaseException | None = None
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            for worker in () if terminate else range(len(self._workers)):
                failure = failure or self._wait_until_closed(worker, deadline)
        finally:
            self.kill()
        return failure

    def _wait_until_closed(self, number: int, deadline: float | None) -> BaseException | None:
        process = self._workers[number].process
        while deadline is None or time.monotonic() < deadline:
            try:
                message = self.receive(number, _TICK)
            except Exception:  # cannot be unpickled; the call that waited for it has raised this
                self.discard_received(number)
                continue
            if message is not None:
                self.discard_received(number)
            if isinstance(message, Closed):
                process.wait(_GRACE)
                return message.error
            if message is None and process.exit_code() is not None:
                return None
        return None


def _check_alive(worker: _WorkerProcess, doing: str) -> None:
    if worker.process.exit_code() is not None:
        raise WorkerCrashedError(f"a worker process {_describe_exit(worker.process)} while {doing}")


def _describe_exit(process: Process) -> str:
    code = process.exit_code()
    if code is None:
        return "is alive"
    if code < 0:
        try:
            return f"was ended by signal {-code} ({signal.Signals(-code).name})"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"ended with exit code {code}"
