"""The process pool: workers are processes that share the arena with the caller."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import StepTimeoutError, WorkerCrashedError
from shoal.pools.doorbell import Doorbell, DoorbellPipes
from shoal.pools.environments import (
    EnvFactory,
    checked_factories,
    close_environments,
    open_environments,
)
from shoal.pools.parallel import ParallelPool
from shoal.pools.processes.main import Attachment
from shoal.pools.processes.recipe import Introduction, Recipe, registered_specs
from shoal.pools.processes.staff import ProcessStaff
from shoal.pools.processes.starting import START_METHODS, StartMethod
from shoal.pools.shares import available_cores, share_out
from shoal.pools.worker import Setup
from shoal.spaces import ObservationMode, agree

__all__ = ["ProcessPool"]


class ProcessPool(ParallelPool):
    """Steps Python environments in worker processes, and perhaps some in the calling one.

    Args:
        factories: One function for each slot, which makes its environment.
        workers: How many processes; by default as many as keep all cores busy.
        caller_works: Whether the caller drives a share of the slots itself, the last ones.
        start: How processes are started: see :mod:`shoal.pools.processes.starting`.
        observation_mode: As in ``gymnasium.vector.AsyncVectorEnv``.
        autoreset_mode: What happens at the end of an episode.
        copy: Whether batches are new arrays, or views that are valid until the batch after next.
        statistics: Whether to report return, length and time of each episode that ends.
        pin: Whether each worker is bound to a core of its own.
        worker_threads: How many threads BLAS and OpenMP may use in a worker; None for no limit.
        doorbell: How workers are woken: by ``"futex"``, ``"pipe"``, or what there is (``"auto"``).
    """

    _staff: ProcessStaff

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
        pin: bool = False,
        worker_threads: int | None = 1,
        doorbell: Doorbell = "auto",
    ) -> None:
        if start not in START_METHODS:
            raise ValueError(f"start must be one of {START_METHODS}, got {start!r}")
        recipes = checked_factories(factories)
        self.num_envs = len(recipes)
        self.autoreset_mode = autoreset_mode
        self._copy, self._statistics = copy, statistics
        self._shares = shares = share_out(self.num_envs, workers, caller_works)
        self._may_spin = len(shares.workers) < available_cores()
        self._staff = ProcessStaff(self._recipes(recipes, start, pin, worker_threads), start)
        self._own_envs = []
        try:
            # While the workers start, and build theirs.
            self._own_envs = open_environments(
                recipes[shares.remote :], shares.remote, self.num_envs
            )
            self._meet(self._staff.introductions(), observation_mode)
            self._pipes = DoorbellPipes(doorbell, len(shares.workers))
            self._setups = self._prepare(shared=True, may_spin=self._may_spin)
            for worker in range(len(shares.workers)):
                self._attach(worker)
        except BaseException:
            self._staff.kill()
            close_environments(self._own_envs, reporting=False)
            raise

    def _recipes(
        self, factories: list[EnvFactory], start: StartMethod, pin: bool, threads: int | None
    ) -> list[Recipe]:
        specs = () if start == "fork" else registered_specs()
        cores = sorted(os.sched_getaffinity(0)) if pin else []
        recipes = []
        for worker, (first, last) in enumerate(self._shares.workers):
            # The caller may run anywhere; the first core is left to it as long as there are others.
            core = cores[(worker + 1) % len(cores)] if cores else None
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
        self._staff.attach(worker, attachment, descriptors + self._pipes.ends_of(worker))

    def _tick(self) -> None:
        for worker in self._staff.lost():
            self._failure = WorkerCrashedError(self._loss(worker))
            raise self._failure

    def _loss(self, worker: int) -> str:
        first, last = self._shares.workers[worker]
        return (
            f"worker {worker} (process {self._staff.pid(worker)}, slots {first} to {last - 1}) "
            f"{self._staff.fate(worker)}; the slot that it had last begun with is "
            f"{self._board.current(worker)}"
        )
