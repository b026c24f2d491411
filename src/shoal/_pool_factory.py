"""From what was asked for to the pool that steps it, here or in the actors of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from shoal._options import VectorOptions
from shoal._plan import Plan, choose, measure
from shoal.errors import FactoryPicklingError
from shoal.kernels import Kernel
from shoal.pools import InlinePool, KernelPool, Pool, ProcessPool, ThreadPool
from shoal.pools._environments import EnvFactory
from shoal.pools._ray import Part, RayPool
from shoal.pools._ray.cluster import Cluster
from shoal.pools._shares import available_core_numbers, cores_from, share_out

__all__ = ["atari_pool", "kernel_pool", "python_pool"]

_NO_ENVIRONMENT = "a vector needs at least one environment, got none"

Built = tuple[Pool, Plan]
"""A pool, and the plan that it was built by."""


def python_pool(factories: Sequence[EnvFactory], options: VectorOptions) -> Built:
    """A pool of Python environments, of one function for each slot."""
    if options.backend == "ray":
        return _factories_on_ray(python_pool, factories, options)
    return _built(factories, options, _planned(factories, options))


def atari_pool(factories: Sequence[EnvFactory], options: VectorOptions) -> Built:
    """A pool of games. There is nothing to time: a step takes longer than sharing it costs."""
    if options.backend == "ray":
        return _factories_on_ray(atari_pool, factories, options)
    if options.backend != "auto":
        return _built(factories, options, _planned(factories, options))
    count = len(factories)
    is_alone = count == 1 or options.cores == 1
    if is_alone and options.is_shared_by_caller and not options.needs_processes:
        plan = Plan("inline", count, 0, count, "there is one slot or one core only")
    else:
        plan = _shared("process", count, options, "emulators keep the GIL")
    return _built(factories, options, plan)


def kernel_pool(kernel: Kernel, count: int, options: VectorOptions) -> Built:
    """A pool of so many slots of a kernel."""
    if options.backend == "ray":
        theirs = options.in_actor()
        return _on_ray(
            count,
            options,
            lambda shares: [
                Part(last - first, partial(_hosted, kernel_pool, kernel, last - first, theirs))
                for first, last in shares
            ],
        )
    pool = KernelPool(
        kernel,
        count,
        autoreset_mode=options.mode,
        copy=options.copy,
        statistics=options.statistics,
        counter_based=options.seeding == "counter",
        workers=options.kernel_threads,
        cores=_kernel_cores(options),
    )
    reason = "asked for" if options.backend == "kernel" else "there is one for it"
    return pool, Plan("kernel", count, pool.workers, count, reason)


def _kernel_cores(options: VectorOptions) -> list[int]:
    """The cores that the threads of a kernel are bound to."""
    if options.thread_affinity_offset >= 0:
        cores = [*range(options.thread_affinity_offset, os.cpu_count() or 1)]
        if not cores:
            raise ValueError(
                f"thread_affinity_offset is {options.thread_affinity_offset}, but there are "
                f"{os.cpu_count()} cores"
            )
        return cores
    if not options.pin:
        return []
    # The first one is left for the caller.
    allowed = available_core_numbers()
    return allowed[1:] or allowed


def _planned(factories: Sequence[EnvFactory], options: VectorOptions) -> Plan:
    count, backend = len(factories), options.backend
    if count == 0:
        raise ValueError(_NO_ENVIRONMENT)
    if backend == "python":
        backend = "auto"
    if backend == "auto" and options.needs_processes:
        backend = "process"
    if backend == "inline":
        return Plan("inline", count, 0, count, "asked for")
    if backend in ("process", "thread"):
        return _shared(backend, count, options, "asked for")
    if count == 1:
        return Plan("inline", 1, 0, 1, "there is one slot only")
    try:
        measured = measure(factories[0], count)
    except Exception as error:
        # Whatever is wrong with it shows where the user can see what it is about.
        return Plan("inline", count, 0, count, f"it could not be timed: {error!r}")
    caller_works = options.shares_with_workers
    return choose(count, measured, caller_works=caller_works, cores=options.cores)


def _shared(
    backend: Literal["process", "thread"], count: int, options: VectorOptions, reason: str
) -> Plan:
    caller_works = options.shares_with_workers
    workers = options.workers
    if workers is None:
        workers = max(1, options.cores - caller_works)
    shares = share_out(count, workers, caller_works)
    return Plan(backend, count, len(shares.workers), shares.own, reason)


def _built(factories: Sequence[EnvFactory], options: VectorOptions, plan: Plan) -> Built:
    """The pool that was planned, and the plan, which may turn out to be impossible."""
    count = len(factories)
    common: dict[str, Any] = {
        "observation_mode": options.observation_mode,
        "autoreset_mode": options.mode,
        "copy": options.copy,
        "statistics": options.statistics,
    }
    caller_works = plan.caller_slots > 0
    if plan.backend == "thread":
        pool = ThreadPool(factories, workers=plan.workers, caller_works=caller_works, **common)
        return pool, plan
    if plan.backend == "process":
        try:
            return ProcessPool(
                factories,
                workers=plan.workers,
                caller_works=caller_works,
                start=options.start,
                on_crash=options.on_crash,
                step_timeout=options.step_timeout,
                pin=_pinned(options),
                worker_threads=options.worker_threads,
                **common,
            ), plan
        except FactoryPicklingError as error:
            if options.backend == "process" or options.needs_processes:
                raise
            plan = Plan("inline", count, 0, count, f"workers cannot be given it: {error}")
    return InlinePool(factories, **common), plan


def _pinned(options: VectorOptions) -> bool | list[int]:
    """Whether worker processes are bound to cores, or to which."""
    if options.thread_affinity_offset < 0:
        return options.pin
    return cores_from(options.thread_affinity_offset)


# In a cluster


def _on_ray(
    count: int, options: VectorOptions, parts: Callable[[list[tuple[int, int]]], list[Part]]
) -> Built:
    """A pool whose slots are shared out among actors; ``parts`` says what each of them builds."""
    cluster = Cluster(options.address)
    try:
        workers = options.workers
        if workers is None:
            workers = max(1, int(cluster.cpus() / options.cpus_per_worker))
        shares = share_out(count, workers, caller_works=False)
        pool = RayPool(
            parts([*shares.workers]),
            cluster,
            cpus=options.cpus_per_worker,
            placement=options.placement,
            runtime_env=options.runtime_env,
            observation_mode=options.observation_mode,
            copy=options.copy,
            on_crash=options.on_crash,
            start_timeout=options.start_timeout,
        )
    except BaseException:
        cluster.leave()
        raise
    hosted = ", ".join(sorted(set(pool.pools)))
    plan = Plan("ray", count, len(shares.workers), 0, f"asked for; they host {hosted}")
    return pool, plan


def _factories_on_ray(
    build: Callable[..., Built], factories: Sequence[EnvFactory], options: VectorOptions
) -> Built:
    if not factories:
        raise ValueError(_NO_ENVIRONMENT)
    theirs = options.in_actor()
    return _on_ray(
        len(factories),
        options,
        lambda shares: [
            Part(
                last - first,
                partial(_hosted, build, factories[first:last], theirs),
                factories[first:last],
            )
            for first, last in shares
        ],
    )


def _hosted(build: Callable[..., Built], *arguments: Any) -> Pool:
    """Called in an actor: its pool."""
    return build(*arguments)[0]
