"""The process pool: workers are processes that share the arena with the caller."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from shoal._spaces import ObservationMode, agree
from shoal.errors import (
    FactoryPicklingError,
    ResetMaskError,
    StepTimeoutError,
    WorkerCrashedError,
)
from shoal.pools._doorbell_pipes import Doorbell, DoorbellPipes
from shoal.pools._environments import (
    EnvFactory,
    checked_factories,
    close_environments,
    open_environments,
)
from shoal.pools._messages import Message, RestartSlots, Slots, Step
from shoal.pools._parallel import ParallelPool
from shoal.pools._processes.env_recipe import BuildResult, Recipe
from shoal.pools._processes.env_registry import registered_specs
from shoal.pools._processes.hang_detector import HangDetector
from shoal.pools._processes.process_start import START_METHODS, StartMethod
from shoal.pools._processes.transport import ProcessTransport
from shoal.pools._processes.worker_main import Attachment
from shoal.pools._restart_policy import OnCrash, RestartPolicy, SlotSeeds
from shoal.pools._shares import available_cores, share_out
from shoal.pools._worker import INBOX

__all__ = ["ProcessPool", "isolated_pool", "lenient_pool"]

_MIN_ISOLATED_WORKERS = 8
"""An isolated pool has at least this many workers, if there are as many environments."""


class ProcessPool(ParallelPool):
    """Steps Python environments in worker processes, and optionally some in the caller's process.

    Args:
        factories: One function for each slot, which makes its environment.
        workers: The number of processes; by default as many as keep all cores busy.
        caller_works: Whether the caller steps the last slots itself.
        start: How processes are started: see :mod:`shoal.pools._processes.process_start`.
        observation_mode: As in ``gymnasium.vector.AsyncVectorEnv``.
        autoreset_mode: What happens at the end of an episode.
        copy: Whether batches are new arrays, or views that are valid until the batch after next.
        statistics: Whether to report return, length and time of each episode that ends.
        pin: Whether to bind each worker to a separate core; or the cores to bind the workers to,
            in this order.
        worker_threads: How many threads BLAS and OpenMP may use in a worker; None for no limit.
        stand_ins: Whether another thread of a worker may step its other slots while one environment
            blocks, for instance on a network.
        doorbell: How to wake workers: ``"futex"``, ``"pipe"``, or ``"auto"`` for a futex if the
            system has them.
        on_crash: What to do when a worker is lost: ``"raise"`` makes this call and every later one
            raise; ``"restart"`` replaces the worker. Its slots are then reset and report a
            truncation, a reward of 0 and ``crashed`` in their infos; other slots are not affected.
        step_timeout: Seconds that a step or reset may take before its worker is killed.
        restarts_per_minute: How many restarts within a minute are allowed; the next loss raises.
    """

    _transport: ProcessTransport

    def __init__(
        self,
        factories: Iterable[EnvFactory],
        *,
        workers: int | None = None,
        caller_works: bool = True,
        start: StartMethod = "fresh",
        observation_mode: ObservationMode = "same",
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        statistics: bool = False,
        pin: bool | Sequence[int] = False,
        worker_threads: int | None = 1,
        stand_ins: bool = True,
        doorbell: Doorbell = "auto",
        on_crash: OnCrash = "raise",
        step_timeout: float | None = None,
        restarts_per_minute: int = 10,
    ) -> None:
        self._restart_policy = RestartPolicy(on_crash, restarts_per_minute)
        if step_timeout is not None and not step_timeout > 0:
            raise ValueError(f"step_timeout must be a positive number, got {step_timeout!r}")
        if start not in START_METHODS:
            raise ValueError(f"start must be one of {START_METHODS}, got {start!r}")
        recipes = checked_factories(factories)
        self.num_envs = len(recipes)
        self.autoreset_mode = autoreset_mode
        self.copy, self._statistics = copy, statistics
        self._shares = shares = share_out(self.num_envs, workers, caller_works)
        self.restarts = self._restart_policy.restarts
        self._hang_detector = None if step_timeout is None else HangDetector(step_timeout)
        self._seeds = SlotSeeds(self.num_envs)
        self._replacing: dict[int, WorkerCrashedError] = {}  # lost workers, not yet replaced
        self._to_report: set[int] = set()  # slots that have not reported the loss of their worker
        self._batches_posted = 0
        self._may_spin = len(shares.workers) < available_cores()
        self._transport = ProcessTransport(
            self._recipes(recipes, start, pin, worker_threads), start
        )
        self._own_envs = []
        try:
            self._transport.wait_until_started()
            # At the same time, the workers build theirs.
            self._own_envs = open_environments(
                recipes[shares.num_worker_slots :], shares.num_worker_slots, self.num_envs
            )
            self._agree_on_spaces(self._transport.wait_until_built(), observation_mode)
            self._pipes = DoorbellPipes(doorbell, len(shares.workers))
            self._setups = self._prepare(
                shared=True,
                may_spin=self._may_spin,
                stand_ins=stand_ins,
                timed=self._hang_detector is not None,
            )
            for worker in range(len(shares.workers)):
                self._attach(worker)
        except BaseException:
            self._transport.kill()
            close_environments(self._own_envs, reporting=False)
            raise

    def _recipes(
        self,
        factories: list[EnvFactory],
        start: StartMethod,
        pin: bool | Sequence[int],
        threads: int | None,
    ) -> list[Recipe]:
        specs = () if start == "fork" else registered_specs()
        cores: Sequence[int] = [] if isinstance(pin, bool) else pin
        if pin is True:
            # The caller is not bound to a core. The first core is used last, to leave it free.
            allowed = sorted(os.sched_getaffinity(0))
            cores = allowed[1:] + allowed[:1]
        recipes = []
        for worker, (first, last) in enumerate(self._shares.workers):
            core = cores[worker % len(cores)] if cores else None
            recipes.append(
                Recipe(factories[first:last], first, self.num_envs, specs, core, threads)
            )
        return recipes

    def _agree_on_spaces(self, built: list[BuildResult], mode: ObservationMode) -> None:
        self.metadata = dict(built[0].metadata or {})
        self.render_mode = built[0].render_mode
        spaces = [pair for result in built for pair in result.spaces]
        spaces += [(env.observation_space, env.action_space) for env in self._own_envs]
        self.spaces = agree([pair[0] for pair in spaces], [pair[1] for pair in spaces], mode)

    def _attach(self, worker: int) -> None:
        assert self._columns.descriptor is not None
        assert self._memory.descriptor is not None
        attachment = Attachment(self._setups[worker], len(self._shares.workers), self._may_spin)
        descriptors = [self._columns.descriptor, self._memory.descriptor]
        self._transport.attach(worker, attachment, descriptors + self._pipes.ends_of(worker))

    # Supervision

    def _before_tasks(self) -> None:
        super()._before_tasks()
        self._batches_posted += 1

    def _note_seeds(self, slots: Slots, seeds: Sequence[int | None]) -> None:
        for slot, seed in zip(slots.tolist(), seeds, strict=True):
            self._seeds.note(slot, seed)
            self._to_report.discard(slot)

    def _check_workers(self) -> None:
        for worker in self._transport.lost():
            if worker not in self._replacing:
                self._lose(worker, WorkerCrashedError(self._describe_loss(worker)))
        self._replace_lost()  # also those whose replacement was interrupted
        if self._hang_detector is not None:
            self._check_for_hangs(self._hang_detector)

    def _check_for_hangs(self, detector: HangDetector) -> None:
        started = self._columns.begun()
        latest = time.monotonic() - detector.seconds
        hanging: dict[int, str] = {}  # by worker
        for slot in np.flatnonzero((started > 0) & (started < latest)).tolist():
            hanging.setdefault(int(self._owners[slot]), f"slot {slot}")
        board = self._board
        for worker in range(len(self._shares.workers)):
            progress = self._batches_posted, board.started(worker), board.finished(worker)
            if self._is_busy(worker) and detector.hangs(worker, progress):
                hanging.setdefault(worker, f"worker {worker}")
        for worker, culprit in hanging.items():
            self._end_hanging(worker, culprit, detector)

    def _end_hanging(self, worker: int, culprit: str, detector: HangDetector) -> None:
        detector.forget(worker)
        self._transport.kill(worker)
        first, last = self._shares.workers[worker]
        loss = StepTimeoutError(
            f"{culprit} has taken longer than step_timeout={detector.seconds} s; worker {worker}, "
            f"with the slots {first} to {last - 1}, was killed"
        )
        self._lose(worker, loss)
        self._replace_lost()

    def _is_busy(self, worker: int) -> bool:
        first, last = self._shares.workers[worker]
        if self._ledger.is_in_round:
            awaited = self._group.round_awaits(worker)
            return awaited and self._board.finished(worker) < last - first
        return any(self._ledger.is_awaited(slot) for slot in range(first, last))

    def _describe_loss(self, worker: int) -> str:
        first, last = self._shares.workers[worker]
        return (
            f"worker {worker} (process {self._transport.pid(worker)}, slots {first} to {last - 1}) "
            f"{self._transport.describe_exit(worker)}; the last slot that it started was "
            f"{self._board.current(worker)}"
        )

    def _lose(self, worker: int, loss: WorkerCrashedError) -> None:
        """Decide to replace a lost worker, or raise its loss."""
        if not self._restart_policy.allows_restart(loss):
            self._messenger.failure = loss
            raise loss
        self._replacing[worker] = loss

    def _replace_lost(self) -> None:
        """Replace lost workers; after an interrupt, a worker is replaced once more."""
        for worker, loss in list(self._replacing.items()):
            try:
                self._transport.replace(worker)
            except Exception as error:
                error.add_note(f"shoal: while starting another worker, because {loss}")
                self._messenger.failure = error
                raise
            self._messenger.restarts[worker] += 1
            self._group.clear(worker)
            self._columns.begun()[slice(*self._shares.workers[worker])] = 0.0
            share = range(*self._shares.workers[worker])
            self._messenger.discard(slot for slot in share if self._ledger.is_awaited(slot))
            self._attach(worker)
            self._restart_slots(worker)
            del self._replacing[worker]

    def _restart_slots(self, worker: int) -> None:
        """Have the slots of a new worker report that the old one was lost."""
        share = range(*self._shares.workers[worker])
        group, ledger = self._group, self._ledger
        if ledger.is_in_round and not group.round_awaits(worker):
            # The old worker has finished its part of the round, unless its message is lost.
            is_lost = worker in group.round_messages and worker not in self._messenger.of_round
            if not is_lost:
                self._to_report.update(share)
                return
            group.redo(worker)
        if ledger.is_in_round:
            self._to_report.update(share)
            self._messenger.send(worker, self._round_message(worker, self._round_banks[0]))
            self._note_steps(np.arange(*self._shares.workers[worker]))
        else:
            awaited = [slot for slot in share if ledger.is_awaited(slot)]
            self._to_report.update(share)
            if awaited:
                self._messenger.send(worker, self._restart_message(awaited, INBOX))
                self._note_steps(np.array(awaited))

    def _restart_message(self, slots: list[int], bank: int, in_round: bool = False) -> RestartSlots:
        seeds = [self._seeds.next_after_crash(slot) for slot in slots]
        finals = None
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            finals = [self._last_observation(slot) for slot in slots]
        return RestartSlots(np.array(slots, np.int64), seeds, finals, bank, in_round)

    def _last_observation(self, slot: int) -> Any:
        try:
            batch = self._group.latest(np.array([slot]), None)
        except ResetMaskError:  # lost in its first reset
            return None
        return next(iter(iterate(batch_space(self.spaces.single_observation, 1), batch)))

    # Slots that were idle when their worker was lost report the loss when they are sent next.

    def _needs_messages(self) -> bool:
        return bool(self._to_report)

    def _round_message(self, worker: int, bank: int) -> Message:
        step = super()._round_message(worker, bank)
        lost = [slot for slot in range(*self._shares.workers[worker]) if slot in self._to_report]
        if not lost:
            return step
        assert isinstance(step, Step)
        return replace(self._restart_message(lost, bank, in_round=True), extras=step.extras)

    def _note_steps(self, slots: Slots) -> None:
        if self._to_report:
            for slot in self._to_report.intersection(slots.tolist()):
                self._seeds.note_crash(slot)
                self._to_report.discard(slot)

    def _step_messages(self, worker: int, slots: Slots) -> tuple[list[Message], Slots]:
        lost = [slot for slot in slots.tolist() if slot in self._to_report]
        if not lost:
            return super()._step_messages(worker, slots)
        messages, plain = super()._step_messages(worker, np.setdiff1d(slots, lost))
        return [self._restart_message(lost, INBOX), *messages], plain


def isolated_pool(
    factories: Sequence[EnvFactory], start: StartMethod | None = None, **options: Any
) -> ProcessPool:
    """Return a pool for code that expects a separate process for each environment.

    No environment runs in the caller's process. Up to eight environments have a worker each, so
    that environments that block do so at the same time.
    """
    options.setdefault("caller_works", False)
    if options.get("workers") is None:
        options["workers"] = max(available_cores(), _MIN_ISOLATED_WORKERS)
    return lenient_pool(factories, start, **options)


def lenient_pool(
    factories: Sequence[EnvFactory], start: StartMethod | None = None, **options: Any
) -> ProcessPool:
    """Return a pool for code that may rely on forked workers.

    Workers are new interpreters by default, and forks if the factories cannot be pickled.
    """
    if start is not None:
        return ProcessPool(factories, start=start, **options)
    try:
        return ProcessPool(factories, **options)
    except FactoryPicklingError:
        return ProcessPool(factories, start="fork", **options)
