"""The options of a vector, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from gymnasium.vector import AutoresetMode

from shoal.pools.processes.starting import StartMethod
from shoal.pools.processes.supervision import OnCrash
from shoal.spaces import ObservationMode
from shoal.vector.infos import InfoFormat
from shoal.vector.seeding import Seeding

__all__ = ["Backend", "VectorOptions"]

Backend = Literal["auto", "kernel", "python", "inline", "thread", "process"]

_FOR_PROCESSES = ("start", "on_crash", "step_timeout", "worker_threads")
_FOR_KERNELS = ("thread_affinity_offset",)


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

    def __post_init__(self) -> None:
        for name, choices in (
            ("backend", Backend),
            ("info_format", InfoFormat),
            ("seeding", Seeding),
            ("start", StartMethod),
            ("on_crash", OnCrash),
        ):
            if getattr(self, name) not in get_args(choices):
                raise ValueError(
                    f"{name} must be one of {get_args(choices)}, got {getattr(self, name)!r}"
                )
        if self.autoreset_mode is not None:
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

    def _check_workers(self) -> None:
        """Refuse options for workers that there are not."""
        processes = [name for name in _FOR_PROCESSES if name in self.changed()]
        if self.pin and self.backend != "kernel":
            processes.append("pin")
        if self.backend in ("inline", "thread", "kernel") and processes:
            raise ValueError(
                f"{', '.join(processes)}: for backend='process', got backend={self.backend!r}"
            )
        kernels = [name for name in _FOR_KERNELS if name in self.changed()]
        if self.seeding == "counter":
            kernels.append("seeding='counter'")
        if self.backend not in ("auto", "kernel") and kernels:
            raise ValueError(
                f"{', '.join(kernels)}: for backend='kernel', got backend={self.backend!r}"
            )
        if self.backend == "kernel" and self.caller_works is False:
            raise ValueError("with backend='kernel' the caller works as well")
        if self.backend == "inline" and (self.workers is not None or self.caller_works is False):
            raise ValueError("with backend='inline' there are no workers: the caller does the work")

    @property
    def needs_processes(self) -> bool:
        """Whether, of Python environments, some option makes sense with worker processes only."""
        return any(name in self.changed() for name in ("workers", "pin", *_FOR_PROCESSES))

    @property
    def excludes_kernels(self) -> bool:
        """Whether some option makes sense with Python environments only."""
        of_python = ("observation_mode", *_FOR_PROCESSES)
        changed = self.changed()
        asked_for = self.backend not in ("auto", "kernel")
        return asked_for or self.caller_works is False or any(name in changed for name in of_python)

    @property
    def excludes_atari(self) -> bool:
        """Whether some option makes sense with Gymnasium's own Atari environments only."""
        return self.backend in ("python", "kernel") or "observation_mode" in self.changed()

    @property
    def needs_kernels(self) -> bool:
        """Whether some option makes sense with kernels only."""
        is_offset = self.thread_affinity_offset >= 0
        return self.backend == "kernel" or is_offset or self.seeding == "counter"

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

    def changed(self) -> dict[str, Any]:
        """Those options that are not at their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }


def _is_count(value: object, least: int = 1) -> bool:
    return (
        hasattr(value, "__index__") and not isinstance(value, bool) and value.__index__() >= least
    )
