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
from shoal.pools._processes.env_recipe import Introduction, Recipe
from shoal.pools._processes.env_registry import registered_specs
from shoal.pools._processes.process_start import START_METHODS, StartMethod
from shoal.pools._processes.supervision import HangWatch
from shoal.pools._processes.transport import ProcessTransport
from shoal.pools._processes.worker_main import Attachment
from shoal.pools._restart_policy import OnCrash, RestartPolicy, SlotSeeds
from shoal.pools._shares import available_cores, share_out
from shoal.pools._worker import INBOX

__all__ = ["ProcessPool", "isolated_pool", "lenient_pool"]

_WORKERS_FOR_FEW = 8
"""Up to so many environments have a worker each, where that is what their code expects."""


class ProcessPool(ParallelPool):
    """Steps Python environments in worker processes, and perhaps some in the calling one.

    Args:
        factories: One function for each slot, which makes its environment.
        workers: How many processes; by default as many as keep all cores busy.
        caller_works: Whether the caller drives a share of the slots itself, the last ones.
        start: How processes are started: see :mod:`shoal.pools._processes.process_start`.
        observation_mode: As in ``gymnasium.vector.AsyncVectorEnv``.
        autoreset_mode: What happens at the end of an episode.
        copy: Whether batches are new arrays, or views that are valid until the batch after next.
        statistics: Whether to report return, length and time of each episode that ends.
        pin: Whether each worker is bound to a core of its own; or the cores that the workers, one
            after the other, are bound to.
        worker_threads: How many threads BLAS and OpenMP may use in a worker; None for no limit.
        stand_ins: Whether other slots of a worker may go on, in another thread, while one
            environment keeps the worker waiting, say for a network.
        doorbell: How workers are woken: by ``"futex"``, ``"pipe"``, or what there is (``"auto"``).
        on_crash: What the loss of a worker means: every call raises from then on (``"raise"``), or
            another one takes its place (``"restart"``). Its slots then come back reset, truncated,
            with a reward of 0 and ``crashed`` in their infos; all others go on undisturbed.
        step_timeout: Seconds that a step or reset may take, after which its worker counts as lost.
        restarts_per_minute: How often workers may be restarted before the pool gives up.
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
        self._watch = None if step_timeout is None else HangWatch(step_timeout)
        self._seeds = SlotSeeds(self.num_envs)
        self._to_report: set[int] = set()  # idle slots whose worker was lost
        self._batches_posted = 0
        self._may_spin = len(shares.workers) < available_cores()
        self._transport = ProcessTransport(
            self._recipes(recipes, start, pin, worker_threads), start
        )
        self._own_envs = []
        try:
            self._transport.wait_until_started()
            # While the workers build theirs.
            self._own_envs = open_environments(
                recipes[shares.num_worker_slots :], shares.num_worker_slots, self.num_envs
            )
            self._meet(self._transport.introductions(), observation_mode)
            self._pipes = DoorbellPipes(doorbell, len(shares.workers))
            self._setups = self._prepare(
                shared=True,
                may_spin=self._may_spin,
                stand_ins=stand_ins,
                timed=self._watch is not None,
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
            # The caller may run anywhere; the first core is left to it as long as there are others.
            allowed = sorted(os.sched_getaffinity(0))
            cores = allowed[1:] + allowed[:1]
        recipes = []
        for worker, (first, last) in enumerate(self._shares.workers):
            core = cores[worker % len(cores)] if cores else None
            recipes.append(
                Recipe(factories[first:last], first, self.num_envs, specs, core, threads)
            )
        return recipes

    def _meet(self, introductions: list[Introduction], mode: ObservationMode) -> None:
        self.metadata = dict(introductions[0].metadata or {})
        self.render_mode = introductions[0].render_mode
        spaces = [pair for introduction in introductions for pair in introduction.spaces]
        spaces += [(env.observation_space, env.action_space) for env in self._own_envs]
        self.spaces = agree([pair[0] for pair in spaces], [pair[1] for pair in spaces], mode)

    def _attach(self, worker: int) -> None:
        assert self._columns.descriptor is not None
        assert self._memory.descriptor is not None
        attachment = Attachment(self._setups[worker], len(self._shares.workers), self._may_spin)
        descriptors = [self._columns.descriptor, self._memory.descriptor]
        self._transport.attach(worker, attachment, descriptors + self._pipes.ends_of(worker))

    # Watching over the workers

    def _before_tasks(self) -> None:
        super()._before_tasks()
        self._batches_posted += 1

    def _note_seeds(self, slots: Slots, seeds: Sequence[int | None]) -> None:
        for slot, seed in zip(slots.tolist(), seeds, strict=True):
            self._seeds.note(slot, seed)
            self._to_report.discard(slot)

    def _check_workers(self) -> None:
        for worker in self._transport.lost():
            self._lose(worker, WorkerCrashedError(self._loss(worker)))
        if self._watch is not None:
            self._check_for_hangs(self._watch)

    def _check_for_hangs(self, watch: HangWatch) -> None:
        begun = self._columns.begun()
        late = time.monotonic() - watch.seconds
        for slot in np.flatnonzero((begun > 0) & (begun < late)).tolist():
            self._give_up(int(self._owners[slot]), f"slot {slot}", watch)
        for worker in range(len(self._shares.workers)):
            progress = self._batches_posted, self._board.begun(worker), self._board.finished(worker)
            if self._is_busy(worker) and watch.hangs(worker, progress):
                self._give_up(worker, f"worker {worker}", watch)

    def _give_up(self, worker: int, who: str, watch: HangWatch) -> None:
        watch.forget(worker)
        self._transport.kill(worker)
        first, last = self._shares.workers[worker]
        loss = StepTimeoutError(
            f"{who} has taken longer than step_timeout={watch.seconds} s; worker {worker}, with "
            f"the slots {first} to {last - 1}, was ended"
        )
        self._lose(worker, loss)

    def _is_busy(self, worker: int) -> bool:
        first, last = self._shares.workers[worker]
        if self._ledger.is_in_round:
            awaited = self._group.round_awaits(worker)
            return awaited and self._board.finished(worker) < last - first
        return any(self._ledger.is_awaited(slot) for slot in range(first, last))

    def _loss(self, worker: int) -> str:
        first, last = self._shares.workers[worker]
        return (
            f"worker {worker} (process {self._transport.pid(worker)}, slots {first} to {last - 1}) "
            f"{self._transport.fate(worker)}; the slot that it had last begun with is "
            f"{self._board.current(worker)}"
        )

    def _lose(self, worker: int, loss: WorkerCrashedError) -> None:
        """Deal with the loss of a worker: replace it, or give up."""
        if not self._restart_policy.allows_restart(loss):
            self._messenger.failure = loss
            raise loss
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
        if ledger.is_in_round:
            self._to_report.update(share)
            self._messenger.send(worker, self._round_message(worker, self._round_banks[0]))
        else:
            awaited = [slot for slot in share if ledger.is_awaited(slot)]
            self._to_report.update(slot for slot in share if slot not in awaited)
            if awaited:
                self._messenger.send(worker, self._restart_message(awaited, INBOX))

    def _restart_message(self, slots: list[int], bank: int, in_round: bool = False) -> RestartSlots:
        self._to_report.difference_update(slots)
        seeds = [self._seeds.after_crash(slot) for slot in slots]
        finals = None
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            finals = [self._last_observation(slot) for slot in slots]
        return RestartSlots(np.array(slots, np.int64), seeds, finals, bank, in_round)

    def _last_observation(self, slot: int) -> Any:
        try:
            batch = self._group.latest(np.array([slot]), None)
        except ResetMaskError:  # it was lost in its very first reset
            return None
        return next(iter(iterate(batch_space(self.spaces.single_observation, 1), batch)))

    # Slots whose worker was lost while they were idle report it when they are sent.

    def _needs_messages(self) -> bool:
        return bool(self._to_report)

    def _round_message(self, worker: int, bank: int) -> Message:
        step = super()._round_message(worker, bank)
        lost = [slot for slot in range(*self._shares.workers[worker]) if slot in self._to_report]
        if not lost:
            return step
        assert isinstance(step, Step)
        return replace(self._restart_message(lost, bank, in_round=True), extras=step.extras)

    def _step_messages(self, worker: int, slots: Slots) -> tuple[list[Message], Slots]:
        lost = [slot for slot in slots.tolist() if slot in self._to_report]
        if not lost:
            return super()._step_messages(worker, slots)
        messages, plain = super()._step_messages(worker, np.setdiff1d(slots, lost))
        return [self._restart_message(lost, INBOX), *messages], plain


def isolated_pool(
    factories: Sequence[EnvFactory], start: StartMethod | None = None, **options: Any
) -> ProcessPool:
    """A pool for code that was written for a process for each environment.

    No environment runs in the calling process, and a few have a worker each, so that those that
    wait do so together.
    """
    options.setdefault("caller_works", False)
    if options.get("workers") is None:
        options["workers"] = max(available_cores(), _WORKERS_FOR_FEW)
    return lenient_pool(factories, start, **options)


def lenient_pool(
    factories: Sequence[EnvFactory], start: StartMethod | None = None, **options: Any
) -> ProcessPool:
    """A pool for code that may rely on workers that are forked.

    By default workers are new interpreters; where the factories cannot be pickled, they are forks.
    """
    if start is not None:
        return ProcessPool(factories, start=start, **options)
    try:
        return ProcessPool(factories, **options)
    except FactoryPicklingError:
        return ProcessPool(factories, start="fork", **options)
