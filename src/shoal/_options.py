"""The options of a vector, checked in one place."""

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


@dataclass
class VectorOptions:
    """What :func:`shoal.make` takes besides the environments; its docstring explains each.

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
            known = _choices(choices)
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        if self.autoreset_mode is not None:
            modes = tuple(mode.value for mode in AutoresetMode)
            if self.autoreset_mode not in (*modes, *AutoresetMode):
                raise ValueError(
                    f"autoreset_mode must be one of {modes}, got {self.autoreset_mode!r}"
                )
            self.autoreset_mode = AutoresetMode(self.autoreset_mode)
            # Before Gymnasium 1.0 there was no other mode, and its infos speak of no other.
            same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
            if self.info_format == "pre-1.0" and not same_step:
                raise ValueError(
                    "info_format='pre-1.0' goes with autoreset_mode=AutoresetMode.SAME_STEP, "
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
                "thread_affinity_offset must be the number of a core, or -1 for none, got "
                f"{self.thread_affinity_offset!r}"
            )
        if self.step_timeout is not None and not self.step_timeout > 0:
            raise ValueError(f"step_timeout must be a positive number, got {self.step_timeout!r}")
        self._check_workers()
        self._check_ray()

    def _check_ray(self) -> None:
        """Refuse options for a cluster that there is not, and those that it cannot have."""
        changed = self.changed()
        if self.backend != "ray":
            if given := [name for name in _FOR_RAY if name in changed]:
                raise ValueError(
                    f"{_go(given)} with backend='ray', not with backend={self.backend!r}"
                )
            return
        if given := [name for name in _NOT_FOR_RAY if name in changed]:
            raise ValueError(f"{' and '.join(given)} cannot go with backend='ray'")
        inner = [name for name in _FOR_PROCESSES if name in changed and name != "on_crash"]
        if inner and self.worker_backend not in ("auto", "python", "process"):
            raise ValueError(
                f"{_go(inner)} with worker_backend='process', not with "
                f"worker_backend={self.worker_backend!r}"
            )
        cpus = self.cpus_per_worker
        if not cpus > 0 or (cpus > 1 and cpus != int(cpus)):
            raise ValueError(
                f"cpus_per_worker must be a whole number, or a part of one CPU, got {cpus!r}"
            )
        if not self.start_timeout > 0:
            raise ValueError(f"start_timeout must be a positive number, got {self.start_timeout!r}")

    def _check_workers(self) -> None:
        """Refuse options for workers that there are not."""
        processes = [name for name in _FOR_PROCESSES if name in self.changed()]
        if self.pin and self.backend != "kernel":
            processes.append("pin")
        if self.backend in ("inline", "thread", "kernel") and processes:
            raise ValueError(
                f"{_go(processes)} with backend='process', not with backend={self.backend!r}"
            )
        kernels = [name for name in _FOR_KERNELS if name in self.changed()]
        if self.seeding == "counter":
            kernels.append("seeding='counter'")
        if self.backend not in ("auto", "kernel", "ray") and kernels:
            raise ValueError(
                f"{_go(kernels)} with backend='kernel', not with backend={self.backend!r}"
            )
        if self.backend == "kernel" and self.caller_works is False:
            raise ValueError("with backend='kernel' the caller works as well")
        if self.backend == "inline" and (self.workers is not None or self.caller_works is False):
            raise ValueError("with backend='inline' there are no workers: the caller does the work")

    @property
    def cores(self) -> int:
        """How many cores there are for the vector."""
        return available_cores()

    @property
    def kernel_threads(self) -> int | None:
        """How many threads a kernel has besides the caller; None for as many as are useful."""
        return self.workers

    @property
    def shares_with_workers(self) -> bool:
        """Whether the caller drives a share where there are workers."""
        return self.is_shared_by_caller

    @property
    def needs_processes(self) -> bool:
        """Whether, of Python environments, some option makes sense with worker processes only."""
        return any(name in self.changed() for name in ("workers", "pin", *_FOR_PROCESSES))

    @property
    def excludes_kernels(self) -> bool:
        """Whether some option makes sense with Python environments only."""
        of_python = ("observation_mode", *_FOR_PROCESSES)
        changed = self.changed()
        if self.backend == "ray":
            return self.in_actor().excludes_kernels
        asked_for = self.backend not in ("auto", "kernel")
        return asked_for or self.caller_works is False or any(name in changed for name in of_python)

    @property
    def excludes_atari(self) -> bool:
        """Whether some option makes sense with Gymnasium's own Atari environments only."""
        asked_for = self.worker_backend if self.backend == "ray" else self.backend
        return asked_for in ("python", "kernel") or "observation_mode" in self.changed()

    @property
    def for_kernels(self) -> list[str]:
        """Those options that make sense with kernels only, as they were given."""
        asked_for = "worker_backend" if self.backend == "ray" else "backend"
        given = [f"{asked_for}='kernel'"] if getattr(self, asked_for) == "kernel" else []
        if self.seeding == "counter":
            given.append("seeding='counter'")
        if self.thread_affinity_offset >= 0:
            given.append(f"thread_affinity_offset={self.thread_affinity_offset}")
        return given

    def check_kernel(self, missing: str) -> None:
        """Refuse options that make sense with kernels only, where one is ``missing``.

        >>> VectorOptions(seeding="counter").check_kernel("Maze")
        Traceback (most recent call last):
        ValueError: there is no kernel for Maze, which seeding='counter' needs: leave that out, or \
write a kernel (shoal.kernels)
        """
        if given := self.for_kernels:
            need, that = ("needs", "that") if len(given) == 1 else ("need", "them")
            raise ValueError(
                f"there is no kernel for {missing}, which {' and '.join(given)} {need}: leave "
                f"{that} out, or write a kernel (shoal.kernels)"
            )

    @property
    def is_shared_by_caller(self) -> bool:
        """Whether the caller drives a share: yes, unless it is to be kept safe or free."""
        if self.caller_works is not None:
            return self.caller_works
        kept_safe = self.on_crash == "restart" or self.step_timeout is not None
        return not kept_safe and self.batch_size is None

    @property
    def mode(self) -> AutoresetMode:
        """The autoreset mode, or what it is where the user did not say."""
        if self.autoreset_mode is not None:
            return AutoresetMode(self.autoreset_mode)
        if self.info_format == "pre-1.0":
            return AutoresetMode.SAME_STEP
        return AutoresetMode.NEXT_STEP

    def in_actor(self) -> ActorOptions:
        """The options of what an actor of a cluster hosts."""
        given = {
            field.name: getattr(self, field.name)
            for field in fields(VectorOptions)
            if field.name not in (*_FOR_RAY, "backend", "workers", "batch_size", "copy")
        }
        cores = max(1, int(self.cpus_per_worker))
        return ActorOptions(backend=self.worker_backend, cpus=cores, **given)

    def changed(self) -> dict[str, Any]:
        """Those options that are not at their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }


@dataclass
class ActorOptions(VectorOptions):
    """The options of what an actor of a cluster hosts, which has so many cores."""

    cpus: int = 1

    def _check_workers(self) -> None:
        """Nothing: what is for worker processes is for the actors otherwise."""

    @property
    def cores(self) -> int:
        """How many cores the actor may use."""
        return self.cpus

    @property
    def kernel_threads(self) -> int | None:
        """How many threads a kernel has besides the actor's own."""
        return self.cpus - 1

    @property
    def shares_with_workers(self) -> bool:
        """Whether the actor drives a share itself: a single core is the worker's."""
        return self.is_shared_by_caller and self.cpus > 1

    @property
    def is_shared_by_caller(self) -> bool:
        """Whether the actor drives slots itself, which is no caller to be kept safe."""
        return self.step_timeout is None

    @property
    def needs_processes(self) -> bool:
        """Whether some option makes sense with worker processes only: not that for crashes."""
        return any(name in self.changed() for name in _FOR_PROCESSES if name != "on_crash")

    @property
    def excludes_kernels(self) -> bool:
        """Whether some option makes sense with Python environments only."""
        asked_for = self.backend not in ("auto", "kernel")
        return asked_for or self.needs_processes or "observation_mode" in self.changed()


def _go(names: list[str]) -> str:
    """The beginning of a sentence about what options go with."""
    return f"{' and '.join(names)} {'goes' if len(names) == 1 else 'go'}"


def _choices(kind: Any) -> tuple[str, ...]:
    """The strings of a Literal, or of several."""
    return tuple(
        choice
        for part in get_args(kind)
        for choice in (get_args(part) if not isinstance(part, str) else (part,))
    )


def _is_count(value: object, least: int = 1) -> bool:
    return (
        hasattr(value, "__index__") and not isinstance(value, bool) and value.__index__() >= least
    )
