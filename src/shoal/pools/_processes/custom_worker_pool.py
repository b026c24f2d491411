"""A pool for custom worker functions of ``gymnasium.vector.AsyncVectorEnv``.

Such a function runs in a separate process for each environment and implements Gymnasium's protocol:
it is called with (index, env_fn, pipe, parent_pipe, shared_memory, error_queue, autoreset_mode)
and, since Gymnasium 1.4, a semaphore; it receives ``(command, data)`` and answers
``(result, success)``.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from multiprocessing.connection import wait as wait_for
from typing import Any

import numpy as np
from gymnasium import Env
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector import async_vector_env as gymnasium_async
from gymnasium.vector.utils import (
    CloudpickleWrapper,
    clear_mpi_env_vars,
    concatenate,
    create_empty_array,
    create_shared_memory,
    iterate,
    read_from_shared_memory,
)

from shoal import _native
from shoal._spaces import ObservationMode, agree
from shoal._types import RawInfos, Results
from shoal.errors import (
    ReceiveTimeoutError,
    RemoteError,
    SpaceMismatchError,
    WorkerCrashedError,
)
from shoal.pools._base import (
    Batch,
    SlotChoice,
    WorkerState,
    check_open,
    checked_seeds,
    slot_numbers,
)
from shoal.pools._environments import Called, EnvFactory, checked_factories
from shoal.pools._processes.error_packing import RemoteTraceback
from shoal.pools._worker_calls import PendingCall

__all__ = ["CustomWorkerPool"]

_TICK = 0.02


class CustomWorkerPool:
    """A process for each environment, which runs the user's worker function.

    Args:
        env_fns: Functions that make the environments.
        worker: The worker function.
        shared_memory: Whether workers write observations to Gymnasium's shared memory.
        copy: Whether batches are new arrays.
        context: The start method of :mod:`multiprocessing`; None for its default.
        daemon: Whether the processes are daemons.
        observation_mode: As in ``gymnasium.vector.AsyncVectorEnv``.
        autoreset_mode: Passed on to the workers.
        max_concurrency: The initial value of the workers' semaphore; None for no semaphore.
    """

    envs: list[Env[Any, Any]] | None = None

    restarts = False

    def __init__(
        self,
        env_fns: Sequence[EnvFactory],
        worker: Callable[..., None],
        *,
        shared_memory: bool,
        copy: bool,
        context: str | None,
        daemon: bool,
        observation_mode: ObservationMode,
        autoreset_mode: AutoresetMode,
        max_concurrency: int | None,
    ) -> None:
        factories = checked_factories(env_fns)
        count = len(inspect.signature(gymnasium_async._async_worker).parameters)
        try:
            inspect.signature(worker).bind(*(None,) * count)
        except TypeError as error:
            raise ValueError(
                f"A custom `worker` must accept {count} arguments. Got the signature "
                f"{inspect.signature(worker)}."
            ) from error
        self.num_envs = len(factories)
        self.autoreset_mode = autoreset_mode
        self.errors: list[tuple[int, BaseException]] = []
        self.copy = copy
        self._closed = False
        self._process = os.getpid()
        self._requested: list[int] = []  # slots of the latest request
        self._pending: list[int] = []  # those of them that have not answered
        self._operation = ""
        self._answers: dict[int, Any] = {}
        self._failed = 0  # how many of the answers report an error
        self._read_spaces(factories, observation_mode)
        methods: Any = multiprocessing.get_context(context)
        buffer = None
        if shared_memory:
            buffer = create_shared_memory(
                self.spaces.single_observation, n=self.num_envs, ctx=methods
            )
            self._observations: Any = read_from_shared_memory(
                self.spaces.single_observation, buffer, n=self.num_envs
            )
        else:
            self._observations = create_empty_array(
                self.spaces.single_observation, n=self.num_envs, fn=np.zeros
            )
        self._shared = shared_memory
        self._failures = methods.Queue()
        permits = methods.BoundedSemaphore(max_concurrency) if max_concurrency else None
        self._pipes: list[Any] = []
        self._processes: list[Any] = []
        with clear_mpi_env_vars():
            for index, factory in enumerate(factories):
                own_end, worker_end = methods.Pipe()
                packed = CloudpickleWrapper(factory)
                arguments = (index, packed, worker_end, own_end, buffer, self._failures)
                process = methods.Process(
                    target=_run_worker,
                    name=f"shoal-custom-worker-{index}",
                    args=(os.getpid(), worker, *(*arguments, autoreset_mode, permits)[:count]),
                    daemon=daemon,
                )
                process.start()
                worker_end.close()
                self._pipes.append(own_end)
                self._processes.append(process)
        try:
            self._check_spaces(observation_mode)
        except BaseException:
            self.close(terminate=True)
            raise

    def _read_spaces(self, factories: list[EnvFactory], mode: ObservationMode) -> None:
        """Read the spaces of one environment, or of each if they may differ."""
        envs = [factory() for factory in (factories if mode == "different" else factories[:1])]
        self.metadata = dict(envs[0].metadata)
        self.render_mode = envs[0].render_mode
        spaces = [(env.observation_space, env.action_space) for env in envs]
        spaces *= self.num_envs // len(spaces)
        for env in envs:
            env.close()
        self.spaces = agree([pair[0] for pair in spaces], [pair[1] for pair in spaces], mode)

    def _check_spaces(self, mode: ObservationMode) -> None:
        """Have each worker compare its environment's spaces with the first one's."""
        single = self.spaces.single_observation, self.spaces.single_action
        request = ("_check_spaces", (mode, *single))
        self._request("check", dict.fromkeys(range(self.num_envs), request))
        for slot, (same_observations, same_actions) in sorted(self._await_answers(None).items()):
            for kind, same in (("observation", same_observations), ("action", same_actions)):
                if not same:
                    raise SpaceMismatchError(
                        f"the sub-environments {kind} spaces are not equivalent: that of slot "
                        f"{slot} differs from {single[kind == 'action']}"
                    )

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Start to reset these slots."""
        chosen = slot_numbers(slots, self.num_envs)
        checked = checked_seeds(seeds, len(chosen))
        requests = [("reset", {"seed": seed, "options": options}) for seed in checked]
        self._request("reset", dict(zip(chosen.tolist(), requests, strict=True)))

    def begin_step(self, actions: Any) -> None:
        """Start to step every slot."""
        by_slot = enumerate(iterate(self.spaces.action, actions))
        self._request("step", {slot: ("step", action) for slot, action in by_slot})

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step of every slot."""
        answers = self._await_answers(timeout)
        slots = range(self.num_envs)
        observations = self._join({slot: answers[slot][0] for slot in slots})
        rewards = np.array([answers[slot][1] for slot in slots], np.float64)
        terminated = np.array([answers[slot][2] for slot in slots], np.bool_)
        truncated = np.array([answers[slot][3] for slot in slots], np.bool_)
        infos = _raw_infos([answers[slot][4] for slot in slots])
        return observations, rewards, terminated, truncated, infos

    def step(self, actions: Any) -> Results:
        """Step every slot."""
        self.begin_step(actions)
        return self.end_step()

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Raise NotImplementedError: custom workers only step all slots together."""
        raise NotImplementedError("slots of a vector with a custom worker are stepped together")

    def recv(
        self,
        min_slots: int | None = None,  # noqa: ARG002
        timeout: float | None = None,
        *,
        max_slots: int | None = None,  # noqa: ARG002
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for the reset or the step in flight."""
        if self._operation == "step":
            return Batch(np.arange(self.num_envs), *self.end_step(timeout))
        slots = self._requested
        answers = self._await_answers(timeout)
        observations = self._join({slot: answers[slot][0] for slot in slots})
        rewards = np.zeros(len(slots))
        flags = np.zeros(len(slots), np.bool_)
        infos = _raw_infos([answers[slot][1] for slot in slots])
        return Batch(np.array(slots), observations, rewards, flags, flags.copy(), infos)

    def _join(self, observations: dict[int, Any]) -> Any:
        """Update the batch of all slots with these observations, and return it."""
        if not self._shared:
            space = self.spaces.single_observation
            newest = list(iterate(self.spaces.observation, deepcopy(self._observations)))
            for slot, observation in observations.items():
                newest[slot] = observation
            self._observations = concatenate(space, newest, self._observations)
        return self.latest()

    @property
    def in_flight(self) -> int:
        """How many slots were sent a request and not yet received."""
        return len(self._pending) + len(self._answers)

    def latest(self, slots: SlotChoice = None) -> Any:  # noqa: ARG002
        """Return the newest observations of all slots."""
        return deepcopy(self._observations) if self.copy else self._observations

    def begin_call(
        self,
        what: Called,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        slots: SlotChoice = None,
    ) -> PendingCall:
        """Start to call a method of each environment."""
        if not isinstance(what, str):
            raise TypeError(f"a custom worker needs the name of a method, got {what!r}")
        chosen = slot_numbers(slots, self.num_envs)
        request: tuple[str, Any] = ("_call", (what, args, kwargs))
        if what == "set_wrapper_attr":
            request = ("_setattr", args)
        self._request("call", dict.fromkeys(chosen.tolist(), request))
        return PendingCall(0, chosen, [])

    def end_call(self, call: PendingCall, timeout: float | None = None) -> list[Any]:
        """Wait for a call, and return its results."""
        answers = self._await_answers(timeout)
        return [answers[slot] for slot in call.slots.tolist()]

    def abandon_call(self, call: PendingCall) -> None:
        """Do nothing: :meth:`drop` discards the replies."""

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""
        if self.in_flight:
            self._await_answers(None)

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call a method of each environment, or read an attribute."""
        return self.end_call(self.begin_call(what, args, kwargs, slots))

    def _request(self, operation: str, requests: dict[int, tuple[str, Any]]) -> None:
        check_open(self._closed, operation)
        if self._pending or self._answers:
            raise AlreadyPendingCallError(
                f"{operation}: a {self._operation} is in flight", self._operation
            )
        self._operation = operation
        self._failed = 0
        self._requested = list(requests)
        self._pending = list(requests)
        for slot, request in requests.items():
            try:
                self._pipes[slot].send(request)
            except (BrokenPipeError, ConnectionResetError):
                continue  # waiting for the answer reports the failure

    def _await_answers(self, timeout: float | None) -> dict[int, Any]:
        """Wait for all answers; after a timeout, those that have arrived are kept."""
        if not self._pending and not self._answers:
            raise NoAsyncCallError("no request is in flight", self._operation)
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._pending:
            remaining = _TICK if deadline is None else min(_TICK, deadline - time.monotonic())
            if remaining < 0:
                raise ReceiveTimeoutError(f"{len(self._pending)} slots have not answered in time")
            by_pipe: dict[Any, int] = {self._pipes[slot]: slot for slot in self._pending}
            for pipe in wait_for(list(by_pipe), remaining):
                slot = by_pipe[pipe]
                try:
                    self._answers[slot], success = self._pipes[slot].recv()
                except (EOFError, ConnectionResetError) as error:
                    self._pending.clear()
                    self._answers.clear()
                    raise WorkerCrashedError(f"the worker of slot {slot} has ended") from error
                self._pending.remove(slot)
                self._failed += not success
        answers, self._answers = self._answers, {}
        if self._failed:
            errors = [self._receive_error() for _ in range(self._failed)]
            self.errors = sorted(errors, key=lambda pair: pair[0])
            raise self.errors[-1][1]
        return answers

    def _receive_error(self) -> tuple[int, BaseException]:
        try:
            slot, kind, value, trace = self._failures.get(timeout=5)
            error = value if isinstance(value, BaseException) else kind(value)
        except Exception as lost:  # the custom worker has put another object into the queue
            return -1, RemoteError(f"an environment failed, and its error was lost: {lost!r}")
        error.__cause__ = RemoteTraceback(trace)
        return slot, error

    def worker_states(self) -> list[WorkerState]:
        """Return the process of each slot."""
        return [
            WorkerState(f"worker {slot}", range(slot, slot + 1), process=process.pid)
            for slot, process in enumerate(self._processes)
        ]

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment and end the processes."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._process:
            return  # a fork of the process that the workers belong to
        deadline = None if timeout is None else time.monotonic() + timeout
        for pipe in () if terminate else self._pipes:
            try:
                pipe.send(("close", None))
            except (BrokenPipeError, ConnectionResetError):
                continue  # it has ended already
        while not terminate and any(process.is_alive() for process in self._processes):
            terminate = deadline is not None and time.monotonic() > deadline
            for pipe in wait_for(self._pipes, _TICK):
                self._discard_message(pipe)
        for process in self._processes:
            process.kill()
            process.join()
        for pipe in self._pipes:
            pipe.close()
        self._failures.close()

    def _discard_message(self, pipe: Any) -> None:
        """Discard a message, so that a worker that is ending is not blocked."""
        try:
            pipe.recv_bytes()
        except (EOFError, OSError):
            time.sleep(_TICK)

    def abandon(self) -> None:
        """End the processes of a pool that was garbage-collected without being closed."""
        self.close(terminate=True)


def _run_worker(parent: int, worker: Callable[..., None], *arguments: Any) -> None:
    """Run a custom worker in a process that ends with its parent and ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _native.start_lifeline(parent, dies_with_thread=False)
    worker(*arguments)


def _raw_infos(infos: list[dict[str, Any]]) -> RawInfos | None:
    events = [(row, info) for row, info in enumerate(infos) if info]
    return (events, None) if events else None
