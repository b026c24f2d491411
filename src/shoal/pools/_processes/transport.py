"""The worker processes of a pool: started together, heard, watched and ended."""

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
from shoal.pools._processes.env_recipe import Introduction, Recipe, Unpacked, pack_recipe
from shoal.pools._processes.mailbox import Mail, dumps, loads
from shoal.pools._processes.process_start import Process, StartMethod, kill, start_process
from shoal.pools._processes.worker_main import Attachment

__all__ = ["ProcessTransport"]

_GONE = (BrokenPipeError, ConnectionResetError, EOFError)
"""How the end of the other process shows."""

_TICK = 0.01
_GRACE = 5.0
"""Seconds that a worker has to end once it has said that its environments are closed."""


@dataclass
class _WorkerProcess:
    process: Process
    mail: Mail


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
        letters = [None if start == "fork" else pack_recipe(recipe) for recipe in recipes]
        self._workers: list[_WorkerProcess] = []
        try:
            for recipe, letter in zip(recipes, letters, strict=True):
                self._workers.append(self._hired(recipe, letter))
        except BaseException:
            self.kill()
            raise

    def _hired(self, recipe: Recipe, letter: bytes | None) -> _WorkerProcess:
        forked = recipe if self._start_method == "fork" else None
        employee = _WorkerProcess(*start_process(self._start_method, recipe.threads, forked))
        if letter is not None:
            # If it does not arrive, the worker's introduction, or the lack of it, says more.
            with suppress(*_GONE):
                employee.mail.send(letter, lambda: _check_alive(employee, "starting"))
        return employee

    def wait_until_started(self) -> None:
        """Wait until every worker runs and has understood what it is to build."""
        for worker in range(len(self._workers)):
            self._wait_until_started(worker)

    def _wait_until_started(self, worker: int) -> None:
        unpacked = self._heard(worker)
        assert isinstance(unpacked, Unpacked)
        if unpacked.error is not None:
            raise FactoryPicklingError(
                "a worker process cannot make sense of the functions that make the environments "
                f"({unpacked.error!r}). What they use must be importable there, or be defined in "
                "the main module; or use start='fork' or backend='thread'."
            ) from unpacked.error

    def introductions(self) -> list[Introduction]:
        """Wait for every worker's word that its environments are built; raise if one's are not."""
        return [self._introduction(worker) for worker in range(len(self._workers))]

    def _introduction(self, worker: int) -> Introduction:
        introduction = self._heard(worker)
        assert isinstance(introduction, Introduction)
        if introduction.error is not None:
            raise introduction.error
        return introduction

    def _heard(self, worker: int) -> Any:
        employee = self._workers[worker]
        while True:
            try:
                letter = employee.mail.receive(_TICK)
            except _GONE:
                employee.process.wait(_GRACE)
                raise WorkerCrashedError(
                    f"worker {worker} {_fate(employee.process)} while building its environments"
                ) from None
            if letter is not None:
                return loads(letter)

    def attach(self, worker: int, attachment: Attachment, descriptors: list[int]) -> None:
        """Let a worker see the pool's memory; it begins to work."""
        mail = self._workers[worker].mail
        mail.send_descriptors(descriptors)
        mail.send(bytes(cloudpickle.dumps(attachment)))

    def replace(self, worker: int) -> Introduction:
        """Start another process in the place of one that is lost, and wait for its word."""
        lost = self._workers[worker]
        kill(lost.process)
        lost.process.wait(None)
        lost.mail.close()
        recipe = self._recipes[worker]
        letter = None if self._start_method == "fork" else pack_recipe(recipe)
        self._workers[worker] = self._hired(recipe, letter)
        self._wait_until_started(worker)
        return self._introduction(worker)

    def pack(self, message: Message) -> bytes:
        """Make a message ready to send."""
        return dumps(message, by_value=True)

    def send(self, worker: int, packed: bytes, timeout: float | None = None) -> None:
        """Send a message, which need not arrive if the worker is lost: that shows elsewhere."""
        employee = self._workers[worker]
        deadline = None if timeout is None else time.monotonic() + timeout

        def look() -> None:
            _check_alive(employee, "at work")
            if deadline is not None and time.monotonic() > deadline:
                raise ReceiveTimeoutError(f"worker {worker} did not take a message in time")

        try:
            employee.mail.send(packed, look)
        except (*_GONE, WorkerCrashedError):
            employee.process.wait(_GRACE)

    def receive(self, worker: int, seconds: float) -> Message | None:
        """The oldest message of a worker, or None if none comes within the time."""
        try:
            letter = self._workers[worker].mail.oldest(seconds)
        except _GONE:
            time.sleep(min(seconds, _TICK))
            return None
        if letter is None:
            return None
        message: Message = loads(letter)
        return message

    def discard_received(self, worker: int) -> None:
        """Forget the message of a worker that was received."""
        self._workers[worker].mail.discard_received()

    def lost(self) -> list[int]:
        """Workers whose process has ended."""
        return [
            number
            for number, employee in enumerate(self._workers)
            if employee.process.exit_code() is not None
        ]

    def pid(self, worker: int) -> int:
        """The process of a worker."""
        return self._workers[worker].process.pid

    def location(self, worker: int) -> tuple[int | None, int | None]:
        """The process of a worker."""
        return self.pid(worker), None

    def fate(self, worker: int) -> str:
        """How the process of a worker has ended, in words."""
        return _fate(self._workers[worker].process)

    def kill(self, worker: int | None = None) -> None:
        """End one worker, or all, at once, and wait until it is gone."""
        chosen = self._workers if worker is None else [self._workers[worker]]
        for employee in chosen:
            kill(employee.process)
        for employee in chosen:
            employee.process.wait(None)
            if worker is None:
                employee.mail.close()

    def end(self, terminate: bool, timeout: float | None) -> BaseException | None:
        """Wait for workers that were told to close; the first failure of an environment to close.

        Workers that are not done in time are ended by force.
        """
        failure: BaseException | None = None
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            for worker in () if terminate else range(len(self._workers)):
                failure = failure or self._farewell(worker, deadline)
        finally:
            self.kill()
        return failure

    def _farewell(self, worker: int, deadline: float | None) -> BaseException | None:
        employee = self._workers[worker]
        while deadline is None or time.monotonic() < deadline:
            try:
                message = self.receive(worker, _TICK)
            except Exception:  # who waited for what cannot be read was told
                self.discard_received(worker)
                continue
            if message is not None:
                self.discard_received(worker)
            if isinstance(message, Closed):
                employee.process.wait(_GRACE)
                return message.error
            if message is None and employee.process.exit_code() is not None:
                return None
        return None


def _check_alive(employee: _WorkerProcess, doing: str) -> None:
    if employee.process.exit_code() is not None:
        raise WorkerCrashedError(f"a worker process {_fate(employee.process)} while {doing}")


def _fate(process: Process) -> str:
    code = process.exit_code()
    if code is None:
        return "is alive"
    if code < 0:
        try:
            return f"was ended by signal {-code} ({signal.Signals(-code).name})"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"ended with exit code {code}"
