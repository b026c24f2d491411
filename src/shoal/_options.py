"""The options of ``shoal.make``, and their checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from gymnasium.vector import AutoresetMode

from shoal._spaces import ObservationMode
from shoal.pools._processes.process_start import StartMethod
from shoal.pools._ray import Placement
from shoal.pools._restart_policy import OnCrash
from shoal.pools._shares import available_cores
from shoal.vector._infos import InfoFormat
from shoal.vector._seeding import Seeding

__all__ = ["ActorOptions", "Backend", "VectorOptions", "WorkerBackend"]

WorkerBackend = Literal["auto", "kernel", "python", "inline", "thread", "process"]
Backend = WorkerBackend | Literal["ray"]

_FOR_PROCESSES = ("start", "on_crash", "step_timeout", "worker_threads")
_FOR_KERNELS = ("thread_affinity_offset",)
_FOR_RAY = (
    "worker_backend",
    "cpus_per_worker",
    "address",
    "placement",
    "runtime_env",
    "start_timeout",
)
_NOT_FOR_RAY = ("caller_works", "pin", "thread_affinity_offset")


@dataclass(kw_only=True)
class VectorOptions:
    """The options of :func:`shoal.make`, whose docstring explains each.

    >>> VectorOptions(statistics=True, autoreset_mode="SameStep").changed()
    {'autoreset_mode': <AutoresetMode.SAME_STEP: 'SameStep'>, 'statistics': True}
    """

    backend: Backend = "auto"
    autoreset_mode: AutoresetMode | str | None = None
    copy: bool = True
    observation_mode: ObservationMode = "same"
    statistics: bool = False
    info_format: InfoFormat = "dict"
    seeding: Seeding = "adjacent"
    workers: int | None = None
    caller_works: bool | None = None
    batch_size: int | None = None
    start: StartMethod = "fresh"
    on_crash: OnCrash = "raise"
    step_timeout: float | None = None
    pin: bool = False
    worker_threads: int | None = 1
    thread_affinity_offset: int = -1
    worker_backend: WorkerBackend = "auto"
    cpus_per_worker: float = 1
    address: str | None = None
    placement: Placement = "spread"
    runtime_env: Mapping[str, Any] | None = None
    start_timeout: float = 60.0

    def __post_init__(self) -> None:
        for name, choices in (
            ("backend", Backend),
            ("worker_backend", WorkerBackend),
            ("placement", Placement),
            ("info_format", InfoFormat),
            ("seeding", Seeding),
            ("start", StartMethod),
            ("on_crash", OnCrash),
        ):
            allowed = _choices(choices)
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        if self.autoreset_mode is not None:
            modes = tuple(mode.value for mode in AutoresetMode)
            if self.autoreset_mode not in (*modes, *AutoresetMode):
                raise ValueError(
                    f"autoreset_mode must be one of {modes}, got {self.autoreset_mode!r}"
                )
            self.autoreset_mode = AutoresetMode(self.autoreset_mode)
            # SAME_STEP was the only mode before Gymnasium 1.0.
            same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
            if self.info_format == "pre-1.0" and not same_step:
                raise ValueError(
                    "info_format='pre-1.0' requires autoreset_mode=AutoresetMode.SAME_STEP, "
                    f"got {self.autoreset_mode}"
                )

        for name in ("workers", "batch_size", "worker_threads"):
            value = getattr(self, name)
            if value is None or _is_count(value):
                continue
            if name == "workers" and self.backend in ("auto", "kernel") and value == 0:
                continue
            raise ValueError(f"{name} must be a positive integer or None, got {value!r}")
        if not _is_count(self.thread_affinity_offset, least=-1):
            raise ValueError(
                "thread_affinity_offset must be the number of a core, or -1 for no binding, got "
                f"{self.thread_affinity_offset!r}"
            )
        if self.step_timeout is not None and not self.step_timeout > 0:
            raise ValueError(f"step_timeout must be a positive number, got {self.step_timeout!r}")
        self._check_workers()
        self._check_ray()

    def _check_ray(self) -> None:
        """Refuse Ray options without Ray, and options that Ray does not support."""
        changed = self.changed()
        if self.backend != "ray":
            if names := [name for name in _FOR_RAY if name in changed]:
                raise ValueError(f"{_require(names)} backend='ray', got backend={self.backend!r}")
            return
        if names := [name for name in _NOT_FOR_RAY if name in changed]:
            raise ValueError(f"{' and '.join(names)} cannot be used with backend='ray'")
        names = [name for name in _FOR_PROCESSES if name in changed and name != "on_crash"]
        if names and self.worker_backend not in ("auto", "python", "process"):
            raise ValueError(
                f"{_require(names)} worker_backend='process', got "
                f"worker_backend={self.worker_backend!r}"
            )
        cpus = self.cpus_per_worker
        if not cpus > 0 or (cpus > 1 and cpus != int(cpus)):
            raise ValueError(
                f"cpus_per_worker must be a whole number, or a fraction of one CPU, got {cpus!r}"
            )
        if not self.start_timeout > 0:
            raise ValueError(f"start_timeout must be a positive number, got {self.start_timeout!r}")

    def _check_workers(self) -> None:
        """Refuse options for workers that the backend does not have."""
        names = [name for name in _FOR_PROCESSES if name in self.changed()]
        if self.pin and self.backend != "kernel":
            names.append("pin")
        if self.backend in ("inline", "thread", "kernel") and names:
            raise ValueError(f"{_require(names)} backend='process', got backend={self.backend!r}")
        names = [name for name in _FOR_KERNELS if name in self.changed()]
        if self.seeding == "counter":
            names.append("seeding='counter'")
        if self.backend not in ("auto", "kernel", "ray") and names:
            raise ValueError(f"{_require(names)} backend='kernel', got backend={self.backend!r}")
        if self.backend == "kernel" and self.caller_works is False:
            raise ValueError(
                "with backend='kernel' the caller works as well: caller_works cannot be False"
            )
        if self.backend == "inline" and (self.workers is not None or self.caller_works is False):
            raise ValueError(
                "with backend='inline' there are no workers: the caller steps every slot"
            )

    @property
    def cores(self) -> int:
        """Number of cores that the vector may use."""
        return available_cores()

    @property
    def kernel_threads(self) -> int | None:
        """Number of threads of a kernel besides the caller; None for as many as are useful."""
        return self.workers

    @property
    def caller_steps_beside_workers(self) -> bool:
        """Whether the caller steps slots even if there are workers."""
        return self.caller_may_step

    @property
    def needs_processes(self) -> bool:
        """Whether some option requires worker processes if the environments are Python's."""
        return any(name in self.changed() for name in ("workers", "pin", *_FOR_PROCESSES))

    @property
    def excludes_kernels(self) -> bool:
        """Whether some option requires Python environments."""
        for_python = ("observation_mode", *_FOR_PROCESSES)
        changed = self.changed()
        if self.backend == "ray":
            return self.in_actor().excludes_kernels
        other_backend = self.backend not in ("auto", "kernel")
        return (
            other_backend
            or self.caller_works is False
            or any(name in changed for name in for_python)
        )

    @property
    def excludes_atari(self) -> bool:
        """Whether some option requires Gymnasium's own Atari environments."""
        backend = self.worker_backend if self.backend == "ray" else self.backend
        return backend in ("python", "kernel") or "observation_mode" in self.changed()

    @property
    def kernel_only(self) -> list[str]:
        """The options that require a kernel, as ``name=value``."""
        backend = "worker_backend" if self.backend == "ray" else "backend"
        options = [f"{backend}='kernel'"] if getattr(self, backend) == "kernel" else []
        if self.seeding == "counter":
            options.append("seeding='counter'")
        if self.thread_affinity_offset >= 0:
            options.append(f"thread_affinity_offset={self.thread_affinity_offset}")
        return options

    def check_kernel(self, environment: str) -> None:
        """Raise if some option requires a kernel; ``environment`` has none.

        >>> VectorOptions(seeding="counter").check_kernel("Maze")
        Traceback (most recent call last):
        ValueError: there is no kernel for Maze, which seeding='counter' needs: omit it, or \
write a kernel (shoal.kernels)
        """
        if options := self.kernel_only:
            need, them = ("needs", "it") if len(options) == 1 else ("need", "them")
            raise ValueError(
                f"there is no kernel for {environment}, which {' and '.join(options)} {need}: "
                f"omit {them}, or write a kernel (shoal.kernels)"
            )

    @property
    def caller_may_step(self) -> bool:
        """Whether the caller steps slots itself.

        By default it does not if ``on_crash`` or ``step_timeout`` isolate it from the environments,
        or if ``batch_size`` asks for asynchronous batches.
        """
        if self.caller_works is not None:
            return self.caller_works
        is_isolated = self.on_crash == "restart" or self.step_timeout is not None
        return not is_isolated and self.batch_size is None

    @property
    def mode(self) -> AutoresetMode:
        """The autoreset mode, with the default resolved."""
        if self.autoreset_mode is not None:
            return AutoresetMode(self.autoreset_mode)
        if self.info_format == "pre-1.0":
            return AutoresetMode.SAME_STEP
        return AutoresetMode.NEXT_STEP

    def in_actor(self) -> ActorOptions:
        """The options of the pool that a Ray actor hosts."""
        options = {
            field.name: getattr(self, field.name)
            for field in fields(VectorOptions)
            if field.name not in (*_FOR_RAY, "backend", "workers", "batch_size", "copy")
        }
        cores = max(1, int(self.cpus_per_worker))
        return ActorOptions(backend=self.worker_backend, cpus=cores, **options)

    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }


@dataclass(kw_only=True)
class ActorOptions(VectorOptions):
    """The options of the pool that a Ray actor hosts."""

    cpus: int = 1
    """Number of CPUs that the actor may use."""

    def _check_workers(self) -> None:
        """Accept all: options for worker processes apply to the actors if there are none."""

    @property
    def cores(self) -> int:
        """Number of cores that the actor may use."""
        return self.cpus

    @property
    def kernel_threads(self) -> int | None:
        """Number of threads of a kernel besides the actor's own."""
        return self.cpus - 1

    @property
    def caller_steps_beside_workers(self) -> bool:
        """Whether the actor steps slots even if it has workers; not if it has one core only."""
        return self.caller_may_step and self.cpus > 1

    @property
    def caller_may_step(self) -> bool:
        """Whether the actor steps slots itself; an actor needs no isolation from crashes."""
        return self.step_timeout is None

    @property
    def needs_processes(self) -> bool:
        """Whether some option requires worker processes; ``on_crash`` concerns the actor."""
        return any(name in self.changed() for name in _FOR_PROCESSES if name != "on_crash")

    @property
    def excludes_kernels(self) -> bool:
        """Whether some option requires Python environments."""
        other_backend = self.backend not in ("auto", "kernel")
        return other_backend or self.needs_processes or "observation_mode" in self.changed()


def _require(names: list[str]) -> str:
    """Join option names to the beginning of an error message, "a and b require"."""
    return f"{' and '.join(names)} {'requires' if len(names) == 1 else 'require'}"


def _choices(literals: Any) -> tuple[str, ...]:
    """Return the strings of a Literal, or of a union of Literals."""
    return tuple(
        choice
        for part in get_args(literals)
        for choice in (get_args(part) if not isinstance(part, str) else (part,))
    )


def _is_count(value: object, least: int = 1) -> bool:
    return (
        hasattr(value, "__index__") and not isinstance(value, bool) and value.__index__() >= least
    )
