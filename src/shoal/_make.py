"""``make``: from what a user has to a vector environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from shoal._envs import builtin_kernel, has_builtin_kernel
from shoal._envs.atari.construction import with_current_names
from shoal._envs.atari.info_packing import AtariPool, packed_games
from shoal._envs.atari.registered_ids import is_atari, registered_games
from shoal._envs.atari.vector import AtariVector
from shoal._error_hints import hinting, named
from shoal._options import Backend, VectorOptions, WorkerBackend
from shoal._pool_factory import atari_pool, kernel_pool, python_pool
from shoal._spaces import ObservationMode
from shoal.kernels import Kernel
from shoal.pools import KernelPool, Pool
from shoal.pools._environments import (
    EnvFactory,
    EnvWrapper,
    check_wrappers,
    instead_of_object,
    wrapped,
)
from shoal.pools._processes.process_start import StartMethod
from shoal.pools._ray import Placement
from shoal.pools._restart_policy import OnCrash
from shoal.vector._infos import InfoFormat
from shoal.vector._kernel_vector_env import KernelVectorEnv
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._seeding import Seeding

__all__ = ["make"]

_OPTIONS = ("num_envs", "wrappers", *(field.name for field in fields(VectorOptions)))


def make(
    what: str | EnvSpec | Kernel | EnvFactory | Sequence[EnvFactory],
    num_envs: int | None = None,
    *,
    backend: Backend = "auto",
    autoreset_mode: AutoresetMode | str | None = None,
    copy: bool = True,
    observation_mode: ObservationMode = "same",
    statistics: bool = False,
    info_format: InfoFormat = "dict",
    seeding: Seeding = "adjacent",
    workers: int | None = None,
    caller_works: bool | None = None,
    batch_size: int | None = None,
    start: StartMethod = "fresh",
    on_crash: OnCrash = "raise",
    step_timeout: float | None = None,
    pin: bool = False,
    worker_threads: int | None = 1,
    thread_affinity_offset: int = -1,
    worker_backend: WorkerBackend = "auto",
    cpus_per_worker: float = 1,
    address: str | None = None,
    placement: Placement = "spread",
    runtime_env: Mapping[str, Any] | None = None,
    start_timeout: float = 60.0,
    wrappers: Sequence[EnvWrapper] = (),
    **env_kwargs: Any,
) -> VectorEnv:
    """Make a vector of environments.

    Args:
        what: An environment's id or spec, a kernel, a function that makes an environment, or a list
            of such functions, one for each slot, which may differ in their parameters. An id of
            ale-py's (``"ALE/..."``) makes games as :class:`shoal.atari.AtariVectorEnv` does, with
            its settings as keyword arguments, unless there are wrappers, an ``observation_mode`` or
            ``backend="python"``.
        num_envs: How many; 1 by default. For a list it follows from the list.
        backend: What steps the environments. ``"kernel"``: native code on threads, for kernels and
            for environments of Gymnasium's that there are kernels for. ``"inline"``: the caller,
            one Python environment after the other. ``"process"``: worker processes. ``"thread"``:
            worker threads, for environments that release the GIL. ``"python"``: the fastest of
            inline and processes, which it finds out by timing a few steps of one environment that
            it makes for that and closes again. ``"auto"``: a kernel if there is one, else as
            ``"python"``. ``"ray"``: actors of a Ray cluster, on one machine or on many, each of
            which hosts a pool of one of the other kinds for its share of the slots; the caller only
            receives. ``envs.plan`` tells what was found and chosen.
        autoreset_mode: When a slot whose episode has ended is reset: in the next step (the
            default), in the same step, or only when the user says so.
        copy: Whether batches are new arrays, or views that stay valid until the batch after next.
        observation_mode: ``"same"``, ``"different"`` where observation spaces may differ in their
            bounds, or the pair (batched observation space, single observation space).
        statistics: Whether infos report an episode's return, length and time at its end, in the
            format of ``gymnasium.wrappers.vector.RecordEpisodeStatistics``.
        info_format: The form of ``infos``: ``"dict"`` of arrays, ``"list"`` of dicts, or
            ``"pre-1.0"`` with ``final_observation`` and ``final_info``, which implies the
            autoreset mode that was the only one then, SAME_STEP.
        seeding: How one seed becomes one for each slot: ``"adjacent"`` or ``"independent"``.
            Kernels draw as Gymnasium's environments do, from NumPy's generator; with ``"counter"``
            from a counter-based one instead, which is seeded 1.2 times as fast and draws as fast.
        workers: How many workers; by default as many as keep all cores busy. For kernels, threads
            besides the caller; with ``backend="kernel"`` there may be 0. For Ray, actors.
        caller_works: Whether the caller drives a share of the slots itself, the last ones. It does
            by default, unless ``batch_size``, ``step_timeout`` or ``on_crash="restart"`` ask for a
            caller that is free and safe.
        batch_size: How many slots ``recv`` returns by default.
        start: How worker processes are started: as new interpreters (``"fresh"``), or by a method
            of :mod:`multiprocessing`.
        on_crash: What the end of a worker process means: an error (``"raise"``), or that another
            one takes its place and its slots come back reset, truncated and with ``crashed`` in
            their infos (``"restart"``).
        step_timeout: Seconds after which an environment that does not answer counts as crashed.
        pin: Whether each worker process, or thread of a kernel, is bound to a core.
        worker_threads: How many threads BLAS and OpenMP may use in a worker process.
        thread_affinity_offset: Bind the threads of a kernel, or the worker processes of Atari
            games, to this core and those after it; -1 for no binding.
        worker_backend: For Ray: what an actor hosts, as ``backend`` has it for a machine.
        cpus_per_worker: For Ray: how many CPUs an actor reserves, and uses. GPUs it has none.
        address: For Ray: ``"auto"`` for the cluster that this machine is a part of, or an address.
            By default the Ray that this process is connected to, else the one that ``RAY_ADDRESS``
            names or that runs here, else a new one on this machine, which ends with the vector.
        placement: For Ray: actors are spread over the nodes (``"spread"``), or as many as fit are
            put on one (``"pack"``).
        runtime_env: For Ray: what the actors need, as Ray describes it.
        start_timeout: For Ray: seconds to wait until there is room in the cluster.
        wrappers: Put around each environment, the first one innermost.
        **env_kwargs: Given to the environment's constructor. For a kernel: its parameters,
            ``max_episode_steps`` and ``render_mode``.

    Example:
        >>> import gymnasium as gym
        >>> envs = make("Acrobot-v1", num_envs=2, statistics=True)
        >>> envs
        KernelVectorEnv(Acrobot-v1, num_envs=2)
        >>> envs.close()
        >>> worlds = [9.81, 1.62, 3.72]
        >>> envs = make([lambda g=g: gym.make("Pendulum-v1", g=g) for g in worlds])
        >>> envs.get_attr("g")
        (9.81, 1.62, 3.72)
        >>> envs.close()
    """
    options = VectorOptions(
        backend,
        autoreset_mode,
        copy,
        observation_mode,
        statistics,
        info_format,
        seeding,
        workers,
        caller_works,
        batch_size,
        start,
        on_crash,
        step_timeout,
        pin,
        worker_threads,
        thread_affinity_offset,
        worker_backend,
        cpus_per_worker,
        address,
        placement,
        runtime_env,
        start_timeout,
    )
    check_wrappers(wrappers)
    if isinstance(what, EnvSpec) and "vectorization_mode" in what.kwargs:
        return _made_again(what, num_envs, options, wrappers, env_kwargs)
    with hinting(what, env_kwargs, _OPTIONS):
        return _made(what, num_envs, options, wrappers, env_kwargs)


def _made(
    what: Any,
    num_envs: int | None,
    options: VectorOptions,
    wrappers: Sequence[EnvWrapper],
    env_kwargs: dict[str, Any],
) -> VectorEnv:
    if is_atari(what) and not options.excludes_atari and not wrappers:
        assert isinstance(what, str | EnvSpec)
        return _atari_vector(what, _count(num_envs), options, env_kwargs)
    kernel = _kernel(what, options, wrappers, env_kwargs)
    if kernel is not None:
        return _kernel_vector(what, kernel, _count(num_envs), options, env_kwargs)
    assert not isinstance(what, Kernel)
    factories = _factories(what, num_envs, env_kwargs)
    if wrappers:
        factories = [partial(wrapped, factory, tuple(wrappers)) for factory in factories]
    pool, plan = python_pool(factories, options)
    envs = VectorEnv(
        pool,
        info_format=options.info_format,
        seeding=options.seeding,
        batch_size=options.batch_size,
    )
    envs.plan = plan
    if isinstance(what, str | EnvSpec):
        spec = what if isinstance(what, EnvSpec) else _registered(pool)
        envs.spec = _vector_spec(spec, pool.num_envs, options, wrappers, env_kwargs)
    return envs


def _atari_vector(
    what: str | EnvSpec, count: int, options: VectorOptions, env_kwargs: dict[str, Any]
) -> AtariVector:
    settings = dict(env_kwargs)
    render_mode = settings.pop("render_mode", None)
    settings = with_current_names(settings)
    games = registered_games(what, count, settings)
    if options.seeding == "counter":
        raise ValueError("seeding='counter' is for kernels, and there is none for Atari games")
    if options.batch_size is not None and options.batch_size > count:
        raise ValueError(f"batch_size is {options.batch_size}, but there are {count} slots")
    factories = packed_games(games, render_mode)
    pool, plan = atari_pool(factories, options)
    envs = AtariVector(
        AtariPool(pool, games),
        info_format=options.info_format,
        seeding=options.seeding,
        batch_size=options.batch_size,
    )
    envs.plan = plan
    spec = what if isinstance(what, EnvSpec) else gymnasium.spec(what)
    shown = {} if render_mode is None else {"render_mode": render_mode}
    envs.spec = _vector_spec(spec, count, options, (), settings | shown)
    return envs


def _kernel(
    what: Any, options: VectorOptions, wrappers: Sequence[EnvWrapper], env_kwargs: dict[str, Any]
) -> Kernel | None:
    """The kernel that a vector is made of, None where it is to be made of Python environments."""
    if isinstance(what, Kernel):
        if options.excludes_kernels or wrappers:
            raise ValueError(
                f"{what.name} is a kernel: it takes no wrappers around single environments, no "
                "backend but 'kernel' or 'ray', and no options for worker processes; those given "
                f"are {', '.join([*options.changed(), *(['wrappers'] if wrappers else [])])}"
            )
        return what.with_arguments(**env_kwargs)
    found = isinstance(what, str | EnvSpec) and has_builtin_kernel(what, env_kwargs)
    if found and not options.excludes_kernels and not wrappers:
        return builtin_kernel(what, env_kwargs)
    missing = named(what)
    if found:
        missing += " with wrappers" if wrappers else " with these options"
    elif env_kwargs and isinstance(what, str | EnvSpec):
        missing += " with these arguments"
    options.check_kernel(missing)
    return None


def _kernel_vector(
    what: Any, kernel: Kernel, count: int, options: VectorOptions, env_kwargs: dict[str, Any]
) -> VectorEnv:
    pool, plan = kernel_pool(kernel, count, options)
    frontend = KernelVectorEnv if isinstance(pool, KernelPool) else VectorEnv
    envs = frontend(
        pool,
        info_format=options.info_format,
        seeding=options.seeding,
        batch_size=options.batch_size,
    )
    envs.plan = plan
    if kernel.spec is not None:
        spec = what if isinstance(what, EnvSpec) else gymnasium.spec(kernel.spec.id)
        envs.spec = _vector_spec(spec, count, options, (), env_kwargs)
    return envs


def _factories(what: Any, num_envs: int | None, env_kwargs: dict[str, Any]) -> list[EnvFactory]:
    if isinstance(what, str | EnvSpec):
        return [partial(gymnasium.make, what, **env_kwargs)] * _count(num_envs)
    if isinstance(what, gymnasium.Env):
        raise TypeError(instead_of_object(what))
    if callable(what):
        return [partial(what, **env_kwargs) if env_kwargs else what] * _count(num_envs)
    if isinstance(what, Sequence) and any(isinstance(part, Kernel) for part in what):
        raise TypeError("a vector is of one kernel: shoal.make(kernel, num_envs=...)")
    if not isinstance(what, Sequence):
        raise TypeError(
            "expected an environment's id, an EnvSpec, a function that makes an environment, or a "
            f"list of such functions, got {what!r}"
        )
    if env_kwargs:
        raise TypeError(
            f"arguments for the environments ({', '.join(env_kwargs)}) cannot be given to a list "
            "of functions: let each function take its own"
        )
    if num_envs is not None and num_envs != len(what):
        raise ValueError(f"num_envs is {num_envs}, but there are {len(what)} functions")
    return list(what)


def _count(num_envs: int | None) -> int:
    count = 1 if num_envs is None else num_envs
    if isinstance(count, bool) or not hasattr(count, "__index__") or count < 1:
        raise ValueError(f"num_envs must be a positive integer, got {num_envs!r}")
    return count.__index__()


def _registered(pool: Pool) -> EnvSpec:
    (spec,) = pool.call("spec", slots=[0])
    return gymnasium.spec(spec.id)


def _vector_spec(
    spec: EnvSpec,
    num_envs: int,
    options: VectorOptions,
    wrappers: Sequence[EnvWrapper],
    env_kwargs: dict[str, Any],
) -> EnvSpec:
    """The spec from which ``gymnasium.make_vec`` makes such a vector again."""
    spec = deepcopy(spec)
    spec.kwargs |= {**env_kwargs, "vectorization_mode": "shoal"}
    if num_envs != 1:
        spec.kwargs["num_envs"] = num_envs
    if changed := options.changed():
        spec.kwargs["vector_kwargs"] = changed
    if wrappers:
        spec.kwargs["wrappers"] = tuple(wrappers)
    return spec


def _made_again(
    spec: EnvSpec,
    num_envs: int | None,
    options: VectorOptions,
    wrappers: Sequence[EnvWrapper],
    env_kwargs: dict[str, Any],
) -> VectorEnv:
    """Make a vector from the spec of another one; what the caller says counts more."""
    spec = deepcopy(spec)
    recorded, spec.kwargs = spec.kwargs, {}
    del recorded["vectorization_mode"]
    recorded_count = recorded.pop("num_envs", 1)
    recorded_options = recorded.pop("vector_kwargs", {})
    recorded_wrappers = recorded.pop("wrappers", ())
    return make(
        spec,
        recorded_count if num_envs is None else num_envs,
        wrappers=wrappers or recorded_wrappers,
        **{**recorded_options, **options.changed()},
        # What is left may be meant for gymnasium.make itself, such as max_episode_steps.
        **{**recorded, **env_kwargs},
    )
