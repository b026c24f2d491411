"""Construction of pools from environments and options, locally or in the actors of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from shoal._options import VectorOptions
from shoal._plan import Plan, choose_plan, measure
from shoal.errors import FactoryPicklingError
from shoal.kernels import Kernel
from shoal.pools import InlinePool, KernelPool, Pool, ProcessPool, ThreadPool
from shoal.pools._environments import EnvFactory
from shoal.pools._ray import Part, RayPool
from shoal.pools._ray.cluster import Cluster
from shoal.pools._shares import available_core_numbers, cores_from, share_out

__all__ = ["atari_pool", "kernel_pool", "python_pool"]

_NO_ENVIRONMENT = "a vector needs at least one environment, got none"

PlannedPool = tuple[Pool, Plan]
"""A pool, and the plan by which it was built."""


def python_pool(factories: Sequence[EnvFactory], options: VectorOptions) -> PlannedPool:
    """Build a pool of Python environments, from one function per slot."""
    if options.backend == "ray":
        return _factories_on_ray(python_pool, factories, options)
    return _build(factories, options, _plan(factories, options))


def atari_pool(factories: Sequence[EnvFactory], options: VectorOptions) -> PlannedPool:
    """Build a pool of Atari games.

    The backend ``"auto"`` measures nothing, since a step always takes longer than sharing it costs.
    """
    if options.backend == "ray":
        return _factories_on_ray(atari_pool, factories, options)
    if options.backend != "auto":
        return _build(factories, options, _plan(factories, options))
    count = len(factories)
    cannot_share = count == 1 or options.cores == 1
    if cannot_share and options.caller_may_step and not options.needs_processes:
        plan = Plan("inline", count, 0, count, "a single slot or core")
    else:
        plan = _parallel_plan("process", count, options, "emulators keep the GIL")
    return _build(factories, options, plan)


def kernel_pool(kernel: Kernel, count: int, options: VectorOptions) -> PlannedPool:
    """Build a pool of ``count`` slots of a kernel."""
    if options.backend == "ray":
        actor_options = options.in_actor()
        return _on_ray(
            count,
            options,
            lambda shares: [
                Part(
                    last - first,
                    partial(_build_in_actor, kernel_pool, kernel, last - first, actor_options),
                )
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
    reason = "requested" if options.backend == "kernel" else "the environment has one"
    return pool, Plan("kernel", count, pool.workers, count, reason)


def _kernel_cores(options: VectorOptions) -> list[int]:
    """The cores to which the threads of a kernel are bound."""
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
    # The first core is left to the caller.
    allowed = available_core_numbers()
    return allowed[1:] or allowed


def _plan(factories: Sequence[EnvFactory], options: VectorOptions) -> Plan:
    count, backend = len(factories), options.backend
    if count == 0:
        raise ValueError(_NO_ENVIRONMENT)
    if backend == "python":
        backend = "auto"
    if backend == "auto" and options.needs_processes:
        backend = "process"
    if backend == "inline":
        return Plan("inline", count, 0, count, "requested")
    if backend in ("process", "thread"):
        return _parallel_plan(backend, count, options, "requested")
    if count == 1:
        return Plan("inline", 1, 0, 1, "a single slot")
    try:
        cost = measure(factories[0], count)
    except Exception as error:
        # The same error is raised, with its context, when the caller uses the vector.
        return Plan("inline", count, 0, count, f"timing its steps failed: {error!r}")
    caller_works = options.caller_steps_beside_workers
    return choose_plan(count, cost, caller_works=caller_works, cores=options.cores)


def _parallel_plan(
    backend: Literal["process", "thread"], count: int, options: VectorOptions, reason: str
) -> Plan:
    caller_works = options.caller_steps_beside_workers
    workers = options.workers
    if workers is None:
        workers = max(1, options.cores - caller_works)
    shares = share_out(count, workers, caller_works)
    return Plan(backend, count, len(shares.workers), shares.own, reason)


def _build(factories: Sequence[EnvFactory], options: VectorOptions, plan: Plan) -> PlannedPool:
    """Build the planned pool, or an inline pool if the functions cannot be pickled.

    Returns the pool and the plan that was carried out.
    """
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
                pin=_process_cores(options),
                worker_threads=options.worker_threads,
                **common,
            ), plan
        except FactoryPicklingError as error:
            if options.backend == "process" or options.needs_processes:
                raise
            plan = Plan("inline", count, 0, count, f"it cannot be sent to workers: {error}")
    return InlinePool(factories, **common), plan


def _process_cores(options: VectorOptions) -> bool | list[int]:
    """Whether worker processes are bound to cores, or the cores to which they are bound."""
    if options.thread_affinity_offset < 0:
        return options.pin
    return cores_from(options.thread_affinity_offset)


# Clusters


def _on_ray(
    count: int, options: VectorOptions, parts: Callable[[list[tuple[int, int]]], list[Part]]
) -> PlannedPool:
    """Build a pool whose slots are divided among actors; ``parts`` describes each actor's pool."""
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
    plan = Plan("ray", count, len(shares.workers), 0, f"requested; they host {hosted}")
    return pool, plan


def _factories_on_ray(
    build: Callable[..., PlannedPool], factories: Sequence[EnvFactory], options: VectorOptions
) -> PlannedPool:
    if not factories:
        raise ValueError(_NO_ENVIRONMENT)
    actor_options = options.in_actor()
    return _on_ray(
        len(factories),
        options,
        lambda shares: [
            Part(
                last - first,
                partial(_build_in_actor, build, factories[first:last], actor_options),
                factories[first:last],
            )
            for first, last in shares
        ],
    )


def _build_in_actor(build: Callable[..., PlannedPool], *arguments: Any) -> Pool:
    """Build an actor's pool; called in the actor."""
    return build(*arguments)[0]
