"""Findings: defects, limits and their remedies, derived from the gathered facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from shoal.doctor._backend_checks import BackendCheck
from shoal.doctor._extras import Extra, PackageStatus
from shoal.doctor._machine import Machine
from shoal.doctor._software import Software

__all__ = ["Finding", "findings"]

_BASE_DESCRIPTORS, _DESCRIPTORS_PER_WORKER = 64, 1
_BASE_THREADS, _THREADS_PER_WORKER = 32, 3
_BYTES_PER_WORKER = 30 << 20
"""Memory of a worker process before it has created an environment, as measured on Linux. The
``_BASE`` values are estimates for the rest of the program."""

_BYTES_FOR_RAY = 1 << 30

_REMEDIES = {
    "inline": "rebuild Shoal on this machine: pip install --force-reinstall "
    "--no-cache-dir --no-binary shoal shoal",
    "process": "use backend='thread' or backend='inline'; check whether this Python can start "
    "itself as a new process",
    "remote": "check whether programs can connect to 127.0.0.1: a firewall or a sandbox may "
    "forbid it",
    "ray": "check whether `ray start --head` works; set RAY_ADDRESS to join a cluster",
}
_DEFAULT_REMEDY = "use another backend, and report this with the output of `shoal doctor --json`"


@dataclass(frozen=True)
class Finding:
    """A fact about the machine or the installation, and a remedy if there is one."""

    level: Literal["problem", "warning", "note"]
    """``problem``: something that Shoal needs is broken. ``warning``: Shoal works, but something
    should be fixed. ``note``: for information only."""
    text: str
    advice: str | None = None


def findings(
    machine: Machine,
    software: Software,
    required: Sequence[PackageStatus],
    extras: Sequence[Extra],
    outcomes: Sequence[BackendCheck],
) -> list[Finding]:
    """Return all findings, the most severe first."""
    result = [
        *_package_findings(required, extras),
        *_backend_findings(outcomes),
        *_core_findings(machine),
        *_limit_findings(machine),
        *_memory_findings(machine, extras),
        *_software_findings(software),
    ]
    levels = ("problem", "warning", "note")
    return sorted(result, key=lambda finding: levels.index(finding.level))


def _package_findings(
    required: Sequence[PackageStatus], extras: Sequence[Extra]
) -> Iterator[Finding]:
    for package in required:
        if package.state != "present":
            status = "it is not" if package.version is None else f"{package.version} is"
            yield Finding(
                "problem",
                f"Shoal needs {package.name}{package.wanted}, but {status} installed",
                f'pip install "{package.name}{package.wanted}"',
            )
    for extra in extras:
        if extra.state == "unsuitable":
            unsuitable = ", ".join(
                f"{package.name} {package.version} is installed, but {package.wanted} is required"
                for package in extra.parts
                if package.state == "unsuitable"
            )
            yield Finding("warning", f"extra {extra.name}: {unsuitable}", extra.install)


def _backend_findings(outcomes: Sequence[BackendCheck]) -> Iterator[Finding]:
    for outcome in outcomes:
        if outcome.state == "fails":
            yield Finding(
                "problem",
                f"backend {outcome.backend} does not work: {outcome.problem}",
                _REMEDIES.get(outcome.backend, _DEFAULT_REMEDY),
            )


def _core_findings(machine: Machine) -> Iterator[Finding]:
    cores, quota = machine.cores, machine.groups.cpus
    if quota is not None and quota < cores.allowed:
        used = f"{cores.usable} core{'s' if cores.usable > 1 else ''}"
        yield Finding(
            "warning",
            f"the control group limits this process to {quota:g} CPUs, but {cores.allowed} are "
            f"visible: Shoal uses {used}, but other libraries may start a thread for each visible "
            "core",
            f"set OMP_NUM_THREADS={cores.usable} for NumPy and PyTorch in the main process",
        )
    if cores.allowed < cores.logical:
        yield Finding(
            "note",
            f"CPU affinity limits this process to {cores.allowed} of {cores.logical} cores",
        )
    if cores.usable == 1:
        yield Finding(
            "note",
            "only one core is usable: workers help only if environments wait, for example for I/O",
        )
    if round(cores.load) > cores.logical:
        yield Finding(
            "note",
            f"the load average is {cores.load:.0f} on {cores.logical} cores: other programs make "
            "measured speeds too low",
        )


def _limit_findings(machine: Machine) -> Iterator[Finding]:
    workers = machine.cores.usable
    descriptors = _BASE_DESCRIPTORS + _DESCRIPTORS_PER_WORKER * workers
    files = machine.open_files
    if files.soft is not None and files.soft < descriptors:
        raisable = files.hard is None or files.hard >= descriptors
        yield Finding(
            "warning",
            f"a process may open at most {files.soft} files, but workers={workers} needs about "
            f"{descriptors}",
            f"run `ulimit -n {descriptors}`"
            if raisable
            else "raise the hard limit of open files, or set a lower workers=",
        )
    threads = _BASE_THREADS + _THREADS_PER_WORKER * workers
    limits = [
        (machine.processes.soft, "this user", "raise `ulimit -u`, or set a lower workers="),
        (machine.groups.processes, "the control group", "raise pids.max, or set a lower workers="),
    ]
    for limit, owner, advice in limits:
        if limit is not None and limit < threads:
            yield Finding(
                "warning",
                f"{owner} may have at most {limit} processes and threads, but workers={workers} "
                f"needs about {threads}",
                advice,
            )


def _memory_findings(machine: Machine, extras: Sequence[Extra]) -> Iterator[Finding]:
    memory, workers = machine.memory, machine.cores.usable
    sizes = [size for size in (memory.available, machine.groups.memory) if size is not None]
    if sizes and min(sizes) < workers * _BYTES_PER_WORKER:
        yield Finding(
            "warning",
            f"{min(sizes) >> 20} MiB of memory are available, but workers={workers} needs about "
            f"{workers * _BYTES_PER_WORKER >> 20} MiB before any environment is created",
            "set a lower workers=, or use start='fork'",
        )
    # Shoal's shared memory is anonymous and not in /dev/shm; Ray's is there.
    has_ray = any(extra.name == "ray" and extra.state == "present" for extra in extras)
    if has_ray and memory.shm_total is not None and memory.shm_total < _BYTES_FOR_RAY:
        yield Finding(
            "warning",
            f"/dev/shm has {memory.shm_total >> 20} MiB: Ray stores objects there and becomes slow "
            "when it is full (Shoal does not use it)",
            "in Docker, use --shm-size=2g",
        )


def _software_findings(software: Software) -> Iterator[Finding]:
    if software.doorbell != "futex":
        yield Finding(
            "note", "this system has no futexes: workers are woken through pipes, which is slower"
        )
    if software.compiler.version is None:
        yield Finding(
            "note",
            f"no C compiler found ({software.compiler.command}): kernels in C cannot be built",
            'install one (apt install gcc), or write kernels in Python: pip install "shoal[numba]"',
        )
