"""What follows from what was found: what is broken, what could be better, and remedies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from shoal.doctor._backend_checks import BackendCheck
from shoal.doctor._extras import Extra, PackageStatus
from shoal.doctor._machine import Machine
from shoal.doctor._software import Software

__all__ = ["Finding", "findings"]

_DESCRIPTORS_BESIDES, _DESCRIPTORS_OF_WORKER = 64, 1
_THREADS_BESIDES, _THREADS_OF_WORKER = 32, 3
_BYTES_OF_WORKER = 30 << 20
"""What a worker process takes by itself, as counted on Linux before it has built an environment;
what the program takes besides is a guess."""

_BYTES_FOR_RAY = 1 << 30

_REMEDIES = {
    "inline": "reinstall Shoal, built on this machine: pip install --force-reinstall "
    "--no-cache-dir --no-binary shoal shoal",
    "process": "use backend='thread' or 'inline' meanwhile; see whether this Python can start "
    "itself as a new process",
    "remote": "see whether programs here can connect to 127.0.0.1: firewalls and sandboxes "
    "may forbid it",
    "ray": "see whether `ray start --head` works here; RAY_ADDRESS names a cluster to join",
}
_USUAL_REMEDY = "use another backend meanwhile, and report this with `shoal doctor --json`"


@dataclass(frozen=True)
class Finding:
    """Something to know, and what to do about it."""

    level: Literal["problem", "warning", "note"]
    """A problem: something that Shoal needs is broken. A warning: something is not as it should
    be. A note: nothing is wrong."""
    text: str
    advice: str | None = None


def findings(
    machine: Machine,
    software: Software,
    required: Sequence[PackageStatus],
    extras: Sequence[Extra],
    outcomes: Sequence[BackendCheck],
) -> list[Finding]:
    """What is worth telling, the worst first."""
    found = [
        *_of_packages(required, extras),
        *_of_backends(outcomes),
        *_of_cores(machine),
        *_of_limits(machine),
        *_of_memory(machine, extras),
        *_of_software(software),
    ]
    levels = ("problem", "warning", "note")
    return sorted(found, key=lambda finding: levels.index(finding.level))


def _of_packages(required: Sequence[PackageStatus], extras: Sequence[Extra]) -> Iterator[Finding]:
    for part in required:
        if part.state != "present":
            here = "it is missing" if part.version is None else f"{part.version} is installed"
            yield Finding(
                "problem",
                f"Shoal needs {part.name}{part.wanted}, but {here}",
                f'pip install "{part.name}{part.wanted}"',
            )
    for extra in extras:
        if extra.state == "unsuitable":
            wrong = [part for part in extra.parts if part.state == "unsuitable"]
            told = ", ".join(f"{part.name} {part.version} (not {part.wanted})" for part in wrong)
            yield Finding("warning", f"the extra {extra.name} does not fit: {told}", extra.install)


def _of_backends(outcomes: Sequence[BackendCheck]) -> Iterator[Finding]:
    for outcome in outcomes:
        if outcome.state == "fails":
            yield Finding(
                "problem",
                f"the backend {outcome.backend} does not work: {outcome.problem}",
                _REMEDIES.get(outcome.backend, _USUAL_REMEDY),
            )


def _of_cores(machine: Machine) -> Iterator[Finding]:
    cores, quota = machine.cores, machine.groups.cpus
    if quota is not None and quota < cores.allowed:
        used = f"{cores.usable} core{'s' if cores.usable > 1 else ''}"
        yield Finding(
            "warning",
            f"the control group allows {quota:g} CPUs, but {cores.allowed} are visible: Shoal "
            f"uses {used}; libraries that count what is visible start too many threads",
            f"OMP_NUM_THREADS={cores.usable} for NumPy and PyTorch in the main process",
        )
    if cores.allowed < cores.logical:
        yield Finding(
            "note",
            f"this process may run on {cores.allowed} of {cores.logical} cores, by its affinity",
        )
    if cores.usable == 1:
        yield Finding(
            "note",
            "there is one core: worker processes only help where environments wait for something",
        )
    if round(cores.load) > cores.logical:
        yield Finding(
            "note",
            f"{cores.load:.0f} programs want {cores.logical} cores at the moment: what is "
            "measured now is too low",
        )


def _of_limits(machine: Machine) -> Iterator[Finding]:
    workers = machine.cores.usable
    descriptors = _DESCRIPTORS_BESIDES + _DESCRIPTORS_OF_WORKER * workers
    files = machine.open_files
    if files.soft is not None and files.soft < descriptors:
        raisable = files.hard is None or files.hard >= descriptors
        yield Finding(
            "warning",
            f"a process may open {files.soft} files, and workers={workers} needs about "
            f"{descriptors}",
            f"ulimit -n {descriptors}" if raisable else "ask for a higher limit, or give workers=",
        )
    threads = _THREADS_BESIDES + _THREADS_OF_WORKER * workers
    limits = [
        (machine.processes.soft, "this user", "ulimit -u, or give workers="),
        (machine.groups.processes, "the control group", "raise pids.max, or give workers="),
    ]
    for limit, who, advice in limits:
        if limit is not None and limit < threads:
            yield Finding(
                "warning",
                f"{who} may have {limit} processes and threads, and workers={workers} needs "
                f"about {threads}",
                advice,
            )


def _of_memory(machine: Machine, extras: Sequence[Extra]) -> Iterator[Finding]:
    memory, workers = machine.memory, machine.cores.usable
    known = [size for size in (memory.available, machine.groups.memory) if size is not None]
    if known and min(known) < workers * _BYTES_OF_WORKER:
        yield Finding(
            "warning",
            f"there are {min(known) >> 20} MiB of memory, and workers={workers} takes about "
            f"{workers * _BYTES_OF_WORKER >> 20} before there is an environment",
            "give fewer workers=, or start='fork'",
        )
    # Shoal's own shared memory has no name and is not in /dev/shm; Ray's is.
    has_ray = any(extra.name == "ray" and extra.state == "present" for extra in extras)
    if has_ray and memory.shm_total is not None and memory.shm_total < _BYTES_FOR_RAY:
        yield Finding(
            "warning",
            f"/dev/shm has {memory.shm_total >> 20} MiB: Ray keeps objects there, and is slow "
            "where it has no room (Shoal itself does not use it)",
            "in Docker: --shm-size=2g",
        )


def _of_software(software: Software) -> Iterator[Finding]:
    if software.doorbell != "futex":
        yield Finding(
            "note", "this system has no futexes: workers are woken by pipes, which takes longer"
        )
    if software.compiler.version is None:
        yield Finding(
            "note",
            f"there is no C compiler ({software.compiler.command}): kernels in C cannot be built "
            "here",
            'apt install gcc, or kernels in Python: pip install "shoal[numba]"',
        )
