"""``shoal.make``: choose and build the vector for a list of environments, an id or a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from functools import partial
from typing import Any, Literal, overload

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from shoal._envs import builtin_kernel, has_builtin_kernel
from shoal._envs.atari.construction import with_current_names
from shoal._envs.atari.info_packing import AtariPool, packed_games
from shoal._envs.atari.registered_ids import is_atari, registered_games
from shoal._envs.atari.vector import AtariVector
from shoal._error_hints import short_name, with_hints
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


@overload
def make(
    what: Kernel,
    num_envs: int | None = None,
    *,
    backend: Literal["auto", "kernel"] = "auto",
    autoreset_mode: AutoresetMode | str | None = None,
    copy: bool = True,
    statistics: bool = False,
    info_format: InfoFormat = "dict",
    seeding: Seeding = "adjacent",
    workers: int | None = None,
    batch_size: int | None = None,
    pin: bool = False,
    thread_affinity_offset: int = -1,
    **env_kwargs: Any,
) -> KernelVectorEnv: ...


@overload
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
) -> VectorEnv: ...


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
        what: An environment id or spec, a kernel, a function that makes an environment, or a list
            of such functions, one per slot. The environments of a list may differ in their
            parameters. An id of ale-py (``"ALE/..."``) makes Atari games as
            :class:`shoal.atari.AtariVectorEnv` does and takes its settings as keyword arguments,
            unless ``wrappers``, an ``observation_mode`` or ``backend="python"`` is given.
        num_envs: Number of environments; 1 by default, the length of the list for a list.
        backend: What steps the environments. ``"kernel"``: native code on threads, for kernels and
            for environments of Gymnasium that have a kernel. ``"inline"``: the caller, one Python
            environment after the other. ``"process"``: worker processes. ``"thread"``: worker
            threads, for environments that release the GIL. ``"python"``: inline or processes,
            whichever is faster; a few steps of one extra environment are timed to find out.
            ``"auto"``: a kernel if there is one, else as ``"python"``. ``"ray"``: actors of a Ray
            cluster, each of which hosts a pool of one of the other kinds for its slots.
            ``envs.plan`` describes the choice.
        autoreset_mode: When a slot whose episode has ended is reset: in the next step (the
            default), in the same step, or only on request.
        copy: Whether batches are new arrays. If False, they are views that stay valid until the
            batch after next.
        observation_mode: ``"same"``, ``"different"`` if observation spaces differ in their bounds,
            or a pair (batched observation space, single observation space).
        statistics: Whether infos report the return, length and duration of each episode when it
            ends, in the format of ``gymnasium.wrappers.vector.RecordEpisodeStatistics``.
        info_format: The format of ``infos``: ``"dict"`` of arrays, ``"list"`` of dicts, or
            ``"pre-1.0"`` with ``final_observation`` and ``final_info``, which implies SAME_STEP.
        seeding: How one seed becomes a seed per slot: ``"adjacent"`` or ``"independent"``. Kernels
            draw from NumPy's generator, as Gymnasium's environments do; with ``"counter"`` they use
            a counter-based generator, which is faster to seed.
        workers: Number of workers; by default enough to keep all cores busy. For kernels, the
            number of threads besides the caller, which may be 0 with ``backend="kernel"``. For Ray,
            the number of actors.
        caller_works: Whether the caller steps the last slots itself. True by default, unless
            ``batch_size``, ``step_timeout`` or ``on_crash="restart"`` is given.
        batch_size: Number of slots that ``recv`` returns by default.
        start: How worker processes are started: as new interpreters (``"fresh"``), or by a method
            of :mod:`multiprocessing`.
        on_crash: What happens when a worker process dies: an error (``"raise"``), or a new worker
            (``"restart"``), whose slots come back reset, truncated and with ``crashed`` in their
            infos.
        step_timeout: Seconds after which an environment that does not respond counts as crashed.
        pin: Whether each worker process, or thread of a kernel, is bound to a core.
        worker_threads: Number of threads that BLAS and OpenMP may use in a worker process.
        thread_affinity_offset: Bind the threads of a kernel, or the worker processes of Atari
            games, to this core and those after it; -1 for no binding.
        worker_backend: For Ray: the ``backend`` of the pool that an actor hosts.
        cpus_per_worker: For Ray: number of CPUs that an actor reserves and uses. No GPU is
            reserved.
        address: For Ray: ``"auto"`` for the cluster that this machine is a part of, or an address.
            By default the Ray that this process is connected to, else the one that ``RAY_ADDRESS``
            names or that runs on this machine, else a new local one, which ends with the vector.
        placement: For Ray: spread actors over the nodes (``"spread"``), or put as many as fit on
            one node (``"pack"``).
        runtime_env: For Ray: the runtime environment of the actors, as Ray documents it.
        start_timeout: For Ray: seconds to wait for free resources in the cluster.
        wrappers: Wrappers for each environment, the innermost first.
        **env_kwargs: Arguments for the environment's constructor. For a kernel: its parameters,
            ``max_episode_steps`` and ``render_mode``.

    Returns:
        A :class:`shoal.vector.VectorEnv`. A vector that is stepped by a local kernel also has
        ``state``, ``save``, ``restore`` and ``render_tiled``.

    Example:
        >>> import gymnasium as gym
        >>> envs = make("Acrobot-v1", num_envs=2, statistics=True)
        >>> envs
        KernelVectorEnv(Acrobot-v1, num_envs=2)
        >>> envs.close()
        >>> gravities = [9.81, 1.62, 3.72]
        >>> envs = make([lambda g=g: gym.make("Pendulum-v1", g=g) for g in gravities])
        >>> envs.get_attr("g")
        (9.81, 1.62, 3.72)
        >>> envs.close()
    """
    options = VectorOptions(
        backend=backend,
        autoreset_mode=autoreset_mode,
        copy=copy,
        observation_mode=observation_mode,
        statistics=statistics,
        info_format=info_format,
        seeding=seeding,
        workers=workers,
        caller_works=caller_works,
        batch_size=batch_size,
        start=start,
        on_crash=on_crash,
        step_timeout=step_timeout,
        pin=pin,
        worker_threads=worker_threads,
        thread_affinity_offset=thread_affinity_offset,
        worker_backend=worker_backend,
        cpus_per_worker=cpus_per_worker,
        address=address,
        placement=placement,
        runtime_env=runtime_env,
        start_timeout=start_timeout,
    )
    check_wrappers(wrappers)
    if isinstance(what, EnvSpec) and "vectorization_mode" in what.kwargs:
        return _make_from_spec(what, num_envs, options, wrappers, env_kwargs)
    with with_hints(what, env_kwargs, _OPTIONS):
        return _make_vector(what, num_envs, options, wrappers, env_kwargs)


def _make_vector(
    what: Any,
    num_envs: int | None,
    options: VectorOptions,
    wrappers: Sequence[EnvWrapper],
    env_kwargs: dict[str, Any],
) -> VectorEnv:
    if is_atari(what) and not options.excludes_atari and not wrappers:
        assert isinstance(what, str | EnvSpec)
        return _make_atari_vector(what, _count(num_envs), options, env_kwargs)
    kernel = _find_kernel(what, options, wrappers, env_kwargs)
    if kernel is not None:
        return _make_kernel_vector(what, kernel, _count(num_envs), options, env_kwargs)
    assert not isinstance(what, Kernel)
    factories = _env_factories(what, num_envs, env_kwargs)
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
        spec = what if isinstance(what, EnvSpec) else _registered_spec(pool)
        envs.spec = _vector_spec(spec, pool.num_envs, options, wrappers, env_kwargs)
    return envs


def _make_atari_vector(
    what: str | EnvSpec, count: int, options: VectorOptions, env_kwargs: dict[str, Any]
) -> AtariVector:
    settings = dict(env_kwargs)
    render_mode = settings.pop("render_mode", None)
    settings = with_current_names(settings)
    games = registered_games(what, count, settings)
    if options.seeding == "counter":
        raise ValueError("seeding='counter' requires a kernel, but Atari games have none")
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
    render_kwargs = {} if render_mode is None else {"render_mode": render_mode}
    envs.spec = _vector_spec(spec, count, options, (), settings | render_kwargs)
    return envs


def _find_kernel(
    what: Any, options: VectorOptions, wrappers: Sequence[EnvWrapper], env_kwargs: dict[str, Any]
) -> Kernel | None:
    """Return the kernel for a vector, or None if Python environments are needed."""
    if isinstance(what, Kernel):
        if options.excludes_kernels or wrappers:
            raise ValueError(
                f"{what.name} is a kernel: it does not support wrappers around single "
                "environments, backends other than 'kernel' and 'ray', or options for worker "
                "processes; got "
                f"{', '.join([*options.changed(), *(['wrappers'] if wrappers else [])])}"
            )
        return what.with_arguments(**env_kwargs)
    is_builtin = isinstance(what, str | EnvSpec) and has_builtin_kernel(what, env_kwargs)
    if is_builtin and not options.excludes_kernels and not wrappers:
        return builtin_kernel(what, env_kwargs)
    requested = short_name(what)
    if is_builtin:
        requested += " with wrappers" if wrappers else " with these options"
    elif env_kwargs and isinstance(what, str | EnvSpec):
        requested += " with these arguments"
    options.check_kernel(requested)
    return None


def _make_kernel_vector(
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


def _env_factories(what: Any, num_envs: int | None, env_kwargs: dict[str, Any]) -> list[EnvFactory]:
    if isinstance(what, str | EnvSpec):
        return [partial(gymnasium.make, what, **env_kwargs)] * _count(num_envs)
    if isinstance(what, gymnasium.Env):
        raise TypeError(instead_of_object(what))
    if callable(what):
        return [partial(what, **env_kwargs) if env_kwargs else what] * _count(num_envs)
    if isinstance(what, Sequence) and any(isinstance(part, Kernel) for part in what):
        raise TypeError("expected one kernel, not a list: call shoal.make(kernel, num_envs=...)")
    if not isinstance(what, Sequence):
        raise TypeError(
            "expected an environment's id, an EnvSpec, a function that makes an environment, or a "
            f"list of such functions, got {what!r}"
        )
    if env_kwargs:
        raise TypeError(
            f"arguments for the environments ({', '.join(env_kwargs)}) cannot be passed to a list "
            "of functions: bind them to each function, for example with functools.partial"
        )
    if num_envs is not None and num_envs != len(what):
        raise ValueError(f"num_envs is {num_envs}, but there are {len(what)} functions")
    return list(what)


def _count(num_envs: int | None) -> int:
    count = 1 if num_envs is None else num_envs
    if isinstance(count, bool) or not hasattr(count, "__index__") or count < 1:
        raise ValueError(f"num_envs must be a positive integer, got {num_envs!r}")
    return count.__index__()


def _registered_spec(pool: Pool) -> EnvSpec:
    (spec,) = pool.call("spec", slots=[0])
    return gymnasium.spec(spec.id)


def _vector_spec(
    spec: EnvSpec,
    num_envs: int,
    options: VectorOptions,
    wrappers: Sequence[EnvWrapper],
    env_kwargs: dict[str, Any],
) -> EnvSpec:
    """A spec from which ``gymnasium.make_vec`` recreates the vector."""
    spec = deepcopy(spec)
    spec.kwargs |= {**env_kwargs, "vectorization_mode": "shoal"}
    if num_envs != 1:
        spec.kwargs["num_envs"] = num_envs
    if changed := options.changed():
        spec.kwargs["vector_kwargs"] = changed
    if wrappers:
        spec.kwargs["wrappers"] = tuple(wrappers)
    return spec


def _make_from_spec(
    spec: EnvSpec,
    num_envs: int | None,
    options: VectorOptions,
    wrappers: Sequence[EnvWrapper],
    env_kwargs: dict[str, Any],
) -> VectorEnv:
    """Recreate a vector from its spec; the caller's arguments take precedence."""
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
        # The remaining ones may be arguments of gymnasium.make, such as max_episode_steps.
        **{**recorded, **env_kwargs},
    )
