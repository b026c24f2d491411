"""Planning: which pool, and how many workers, make the most of this machine for an environment."""

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

__all__ = ["Measured", "Plan", "PoolKind", "choose", "measure"]

PoolKind = Literal["inline", "thread", "process", "kernel", "ray"]

_ROUND = 25e-6
"""Seconds that it takes to wake workers and to wait for them, beyond their work."""

_SLOT = 0.2e-6
"""Seconds that a slot takes beyond its environment's step."""

_BYTES_PER_SECOND = 5e9
"""How fast observations are copied out of shared memory."""

_WORTH_IT = 1.25
"""How many times faster workers must promise to be: the promise is a guess, their cost is not."""

_SAVED = 100e-6
"""Seconds of a batch that they must promise to save: less is not worth starting processes."""

_MOST_WORKERS = 32

_LEAST_STEPS, _FEW_STEPS, _MOST_STEPS = 3, 10, 200
_SECONDS = 0.01


@dataclass(frozen=True)
class Measured:
    """What an environment takes for a step, in seconds."""

    step: float
    """By the clock."""

    busy: float
    """Of that, how much it kept the processor busy; the rest it waited, say for a network."""

    infos: float
    """To send its infos from one process to another."""

    nbytes: int
    """How large an observation is."""


@dataclass(frozen=True)
class Plan:
    """How a vector is stepped, and why; ``print(envs.plan)`` shows it.

    >>> print(Plan("inline", 8, 0, 8, "its steps are too short to share", 2e-6, 4.5e5))
    8 slots, inline: its steps are too short to share (2 us a step, expect about 450,000 steps/s)
    >>> print(Plan("process", 8, 1, 4, "asked for"))
    8 slots, 1 worker process and the caller with 4 slots: asked for
    """

    backend: PoolKind
    num_envs: int
    workers: int
    caller_slots: int
    reason: str
    step_seconds: float | None = None
    expected_rate: float | None = None

    def __str__(self) -> str:
        who = "inline"
        if self.backend == "kernel":
            who = f"a kernel on up to {self.workers + 1} threads"
        elif self.backend == "ray":
            who = f"{self.workers} actor{'s' if self.workers > 1 else ''} of Ray"
        elif self.workers:
            several = "es" if self.backend == "process" and self.workers > 1 else ""
            several = "s" if self.backend == "thread" and self.workers > 1 else several
            who = f"{self.workers} worker {self.backend}{several}"
            if self.caller_slots:
                who += f" and the caller with {_slots(self.caller_slots)}"
        text = f"{_slots(self.num_envs)}, {who}: {self.reason}"
        if self.step_seconds is not None and self.expected_rate is not None:
            # Two digits: it is measured in a moment, on a machine that may be busy.
            rate = _formatting.speed(float(f"{self.expected_rate:.2g}"))
            step = _formatting.short_time(self.step_seconds)
            text += f" ({step} a step, expect about {rate} steps/s)"
        return text


def _slots(count: int) -> str:
    return f"{count} slot" if count == 1 else f"{count} slots"


def measure(
    factory: EnvFactory, num_envs: int = 1, clock: Callable[[], float] = time.perf_counter
) -> Measured:
    """Build an environment, time a few of its steps with random actions, and close it.

    ``num_envs`` is how many there will be: if a few steps show that even so many are too short to
    share, the rest is spared.
    """
    env = factory()
    try:
        # A copy, since sampling would change the space, which may belong to a whole class.
        actions = deepcopy(env.action_space)
        actions.seed(0)
        observation, info = env.reset(seed=0)
        nbytes = len(pickle.dumps(observation, pickle.HIGHEST_PROTOCOL))
        steps: list[float] = []
        infos: list[float] = []
        begun, usage_before = clock(), _Usage.now()
        while len(steps) < _LEAST_STEPS or (
            clock() - begun < _SECONDS and len(steps) < _MOST_STEPS
        ):
            action = actions.sample()
            before = clock()
            _, _, terminated, truncated, info = env.step(action)
            steps.append(clock() - before)
            infos.append(_sending(info, clock))
            if terminated or truncated:
                env.reset()
            too_short = len(steps) == _FEW_STEPS and num_envs * median(steps) < _SAVED
            if too_short or clock() - begun > 50 * _SECONDS:
                break
        usage, elapsed = _Usage.now(), clock() - begun
    finally:
        env.close()
    # The first step of an environment is often not like the others.
    rest = slice(1 if len(steps) > 1 else 0, None)
    step = median(steps[rest])
    # Being pushed off the core by others is no waiting: that is done of one's own accord.
    waited = usage.waits - usage_before.waits >= len(steps) / 2
    share = min(1.0, (usage.seconds - usage_before.seconds) / elapsed) if waited else 1.0
    return Measured(step, step * share, median(infos[rest]), nbytes)


@dataclass(frozen=True)
class _Usage:
    """How long this thread has kept the processor busy, and how often it has waited."""

    seconds: float
    waits: int

    @classmethod
    def now(cls) -> _Usage:
        usage = resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF))
        return cls(usage.ru_utime + usage.ru_stime, usage.ru_nvcsw)


def _sending(info: Any, clock: Callable[[], float]) -> float:
    if not info:
        return 0.0
    before = clock()
    pickle.loads(pickle.dumps(info, pickle.HIGHEST_PROTOCOL))
    return clock() - before


def choose(
    num_envs: int,
    measured: Measured,
    *,
    caller_works: bool = True,
    cores: int | None = None,
) -> Plan:
    """Choose between inline and processes for an environment whose steps were measured.

    >>> slow = Measured(step=1e-3, busy=1e-3, infos=0.0, nbytes=100)
    >>> print(choose(8, slow, cores=4))
    8 slots, 3 worker processes and the caller with 2 slots: 4 cores share its steps \
(1 ms a step, expect about 3,900 steps/s)
    """
    available = available_cores() if cores is None else cores
    inline_seconds = num_envs * (measured.step + _SLOT)
    inline = _plan("inline", num_envs, None, "its steps are too short to share", measured)
    if num_envs == 1:
        return _plan("inline", 1, None, "there is one slot only", measured)
    if measured.busy < 0.5 * measured.step:
        # Workers that wait leave their cores to others, so there may be more of them.
        wanted = ceil(available * measured.step / max(measured.busy, 1e-9))
        workers = max(1, min(num_envs, max(available, wanted), _MOST_WORKERS))
        shares = share_out(num_envs, workers, caller_works=False)
        reason = "its steps are spent waiting"
    elif available == 1:
        return _plan("inline", num_envs, None, "there is one core only", measured)
    else:
        caller = caller_works and num_envs > 1
        shares = share_out(num_envs, max(1, available - caller), caller_works)
        reason = f"{available} cores share its steps"
    parallel = _plan("process", num_envs, shares, reason, measured)
    assert parallel.expected_rate is not None
    seconds = num_envs / parallel.expected_rate
    worth_it = inline_seconds > max(_WORTH_IT * seconds, seconds + _SAVED)
    return parallel if worth_it else inline


def _plan(
    backend: PoolKind, num_envs: int, shares: Shares | None, reason: str, measured: Measured
) -> Plan:
    if shares is None:
        seconds = num_envs * (measured.step + _SLOT)
        return Plan(backend, num_envs, 0, num_envs, reason, measured.step, num_envs / seconds)
    largest = max(max(last - first for first, last in shares.workers), shares.own)
    seconds = (
        largest * (measured.step + _SLOT)
        + shares.num_worker_slots * (measured.infos + measured.nbytes / _BYTES_PER_SECOND)
        + _ROUND
    )
    workers = len(shares.workers)
    rate = num_envs / seconds
    return Plan(backend, num_envs, workers, shares.own, reason, measured.step, rate)
