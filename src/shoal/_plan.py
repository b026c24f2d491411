"""Choice of the fastest pool and number of workers for an environment on this machine."""

from __future__ import annotations

import pickle
import resource
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any, Literal

from shoal import _formatting
from shoal.pools._environments import EnvFactory
from shoal.pools._shares import Shares, available_cores, share_out

__all__ = ["Plan", "PoolKind", "StepCost", "choose_plan", "measure"]

PoolKind = Literal["inline", "thread", "process", "kernel", "ray"]

_ROUND_OVERHEAD = 25e-6
"""Seconds per round to wake workers and to wait for them."""

_SLOT_OVERHEAD = 0.2e-6
"""Seconds per slot beyond the environment's step."""

_COPY_BYTES_PER_SECOND = 5e9
"""Throughput of copying observations out of shared memory."""

_MIN_SPEEDUP = 1.25
"""Expected speedup from which workers are used; the estimate is uncertain, their cost is not."""

_MIN_SECONDS_SAVED = 100e-6
"""Expected seconds saved per batch from which starting processes is worthwhile."""

_MAX_WORKERS = 32

# Limits of a measurement.
_MIN_STEPS, _EARLY_EXIT_STEPS, _MAX_STEPS = 3, 10, 200
_MEASURED_SECONDS = 0.01


@dataclass(frozen=True)
class StepCost:
    """The cost of one step of an environment."""

    step: float
    """Wall-clock seconds."""

    busy: float
    """CPU seconds; the difference to ``step`` is spent waiting, for example for a network."""

    infos: float
    """Seconds to send the infos from one process to another."""

    nbytes: int
    """Size of a pickled observation."""


@dataclass(frozen=True)
class Plan:
    """How a vector is stepped, and why. ``print(envs.plan)`` shows it.

    >>> print(Plan("inline", 8, 0, 8, "its steps are too short to share", 2e-6, 4.5e5))
    8 slots, inline: its steps are too short to share (2 us a step, expect about 450,000 steps/s)
    >>> print(Plan("process", 8, 1, 4, "requested"))
    8 slots, 1 worker process and the caller with 4 slots: requested
    """

    backend: PoolKind
    num_envs: int
    workers: int
    caller_slots: int
    reason: str
    step_seconds: float | None = None
    expected_rate: float | None = None

    def __str__(self) -> str:
        drivers = "inline"
        if self.backend == "kernel":
            drivers = f"a kernel on up to {self.workers + 1} threads"
        elif self.backend == "ray":
            drivers = f"{self.workers} actor{'s' if self.workers > 1 else ''} of Ray"
        elif self.workers:
            plural = "es" if self.backend == "process" and self.workers > 1 else ""
            plural = "s" if self.backend == "thread" and self.workers > 1 else plural
            drivers = f"{self.workers} worker {self.backend}{plural}"
            if self.caller_slots:
                drivers += f" and the caller with {_slots(self.caller_slots)}"
        text = f"{_slots(self.num_envs)}, {drivers}: {self.reason}"
        if self.step_seconds is not None and self.expected_rate is not None:
            # Two digits, since the measurement is short and the machine may be busy.
            rate = _formatting.speed(float(f"{self.expected_rate:.2g}"))
            step = _formatting.short_time(self.step_seconds)
            text += f" ({step} a step, expect about {rate} steps/s)"
        return text


def _slots(count: int) -> str:
    return f"{count} slot" if count == 1 else f"{count} slots"


def measure(
    factory: EnvFactory, num_envs: int = 1, clock: Callable[[], float] = time.perf_counter
) -> StepCost:
    """Make an environment, time a few of its steps with random actions, and close it.

    Args:
        factory: Function that makes the environment.
        num_envs: Planned number of environments. If the first steps show that sharing even so many
            is not worthwhile, the measurement ends early.
        clock: Returns the current time in seconds.
    """
    env = factory()
    try:
        # A copy, since sampling changes the space, which may be a class attribute.
        actions = deepcopy(env.action_space)
        actions.seed(0)
        observation, info = env.reset(seed=0)
        nbytes = len(pickle.dumps(observation, pickle.HIGHEST_PROTOCOL))
        steps: list[float] = []
        infos: list[float] = []
        start, usage_before = clock(), _Usage.now()
        while len(steps) < _MIN_STEPS or (
            clock() - start < _MEASURED_SECONDS and len(steps) < _MAX_STEPS
        ):
            action = actions.sample()
            before = clock()
            _, _, terminated, truncated, info = env.step(action)
            steps.append(clock() - before)
            infos.append(_pickling_seconds(info, clock))
            if terminated or truncated:
                env.reset()
            too_short = (
                len(steps) == _EARLY_EXIT_STEPS and num_envs * median(steps) < _MIN_SECONDS_SAVED
            )
            if too_short or clock() - start > 50 * _MEASURED_SECONDS:
                break
        usage, elapsed = _Usage.now(), clock() - start
    finally:
        env.close()
    # The first step is skipped, since it often takes longer.
    counted = slice(1 if len(steps) > 1 else 0, None)
    step = median(steps[counted])
    # Voluntary context switches only: preemption by other processes is not waiting.
    has_waited = usage.waits - usage_before.waits >= len(steps) / 2
    busy_share = min(1.0, (usage.seconds - usage_before.seconds) / elapsed) if has_waited else 1.0
    return StepCost(step, step * busy_share, median(infos[counted]), nbytes)


@dataclass(frozen=True)
class _Usage:
    """CPU time of this thread, and its number of voluntary context switches."""

    seconds: float
    waits: int

    @classmethod
    def now(cls) -> _Usage:
        usage = resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF))
        return cls(usage.ru_utime + usage.ru_stime, usage.ru_nvcsw)


def _pickling_seconds(info: Any, clock: Callable[[], float]) -> float:
    if not info:
        return 0.0
    before = clock()
    pickle.loads(pickle.dumps(info, pickle.HIGHEST_PROTOCOL))
    return clock() - before


def choose_plan(
    num_envs: int,
    cost: StepCost,
    *,
    caller_works: bool = True,
    cores: int | None = None,
) -> Plan:
    """Choose between inline and processes by the cost of a step.

    >>> slow = StepCost(step=1e-3, busy=1e-3, infos=0.0, nbytes=100)
    >>> print(choose_plan(8, slow, cores=4))
    8 slots, 3 worker processes and the caller with 2 slots: 4 cores share its steps \
(1 ms a step, expect about 3,900 steps/s)
    """
    available = available_cores() if cores is None else cores
    inline_seconds = num_envs * (cost.step + _SLOT_OVERHEAD)
    inline = _estimate("inline", num_envs, None, "its steps are too short to share", cost)
    if num_envs == 1:
        return _estimate("inline", 1, None, "a single slot", cost)
    if cost.busy < 0.5 * cost.step:
        # Waiting workers leave their cores free, so more workers than cores are useful.
        useful = ceil(available * cost.step / max(cost.busy, 1e-9))
        workers = max(1, min(num_envs, max(available, useful), _MAX_WORKERS))
        shares = share_out(num_envs, workers, caller_works=False)
        reason = "its steps mostly wait"
    elif available == 1:
        return _estimate("inline", num_envs, None, "a single core", cost)
    else:
        caller = caller_works and num_envs > 1
        shares = share_out(num_envs, max(1, available - caller), caller_works)
        reason = f"{available} cores share its steps"
    parallel = _estimate("process", num_envs, shares, reason, cost)
    assert parallel.expected_rate is not None
    seconds = num_envs / parallel.expected_rate
    is_worthwhile = inline_seconds > max(_MIN_SPEEDUP * seconds, seconds + _MIN_SECONDS_SAVED)
    return parallel if is_worthwhile else inline


def _estimate(
    backend: PoolKind, num_envs: int, shares: Shares | None, reason: str, cost: StepCost
) -> Plan:
    """Return a plan with its expected rate; inline if ``shares`` is None."""
    if shares is None:
        seconds = num_envs * (cost.step + _SLOT_OVERHEAD)
        return Plan(backend, num_envs, 0, num_envs, reason, cost.step, num_envs / seconds)
    largest = max(max(last - first for first, last in shares.workers), shares.own)
    seconds = (
        largest * (cost.step + _SLOT_OVERHEAD)
        + shares.num_worker_slots * (cost.infos + cost.nbytes / _COPY_BYTES_PER_SECOND)
        + _ROUND_OVERHEAD
    )
    workers = len(shares.workers)
    rate = num_envs / seconds
    return Plan(backend, num_envs, workers, shares.own, reason, cost.step, rate)
