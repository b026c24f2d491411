"""The machine as this process sees it: cores, memory and limits."""

from __future__ import annotations

import os
import platform
import resource
from dataclasses import dataclass
from pathlib import Path

from shoal.pools._cgroups import GroupLimits, read_limits
from shoal.pools._shares import available_core_numbers, available_cores

__all__ = ["Cores", "Limit", "Machine", "Memory", "read_machine"]

_CONTAINERS = {".dockerenv": "Docker", "run/.containerenv": "Podman"}
"""Files that exist only in a container."""

_CONTAINER_GROUPS = {"kubepods": "Kubernetes", "docker": "Docker", "lxc": "LXC"}
"""Substrings of the control group of process 1 that identify a container."""


@dataclass(frozen=True)
class Cores:
    """Numbers of cores. ``logical`` counts each hardware thread, ``physical`` does not."""

    logical: int
    physical: int | None
    allowed: int
    """Cores in this process's CPU affinity mask."""
    usable: int
    """Cores that Shoal uses, given the affinity and the limits of control groups."""
    model: str | None
    governor: str | None
    """The frequency governor of the first core."""
    load: float
    """The load average of the last minute."""


@dataclass(frozen=True)
class Memory:
    """Memory in bytes; None if unknown."""

    total: int | None
    available: int | None
    shm_total: int | None
    """Size of ``/dev/shm``, which other libraries use for shared memory. Shoal does not."""
    shm_free: int | None


@dataclass(frozen=True)
class Limit:
    """A resource limit of this process: the current one, and the highest it may set."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True)
class Machine:
    """A machine as a process on it sees it."""

    system: str
    surroundings: str | None
    """A container or virtual environment, such as ``Docker`` or ``WSL``; None if none is known."""
    cores: Cores
    memory: Memory
    groups: GroupLimits
    open_files: Limit
    processes: Limit


def read_machine(root: Path = Path("/")) -> Machine:
    """Read the facts about this machine.

    Args:
        root: The root of the file system.
    """
    return Machine(
        f"{platform.system()} {platform.release()}, {platform.machine()}",
        _surroundings(root),
        _cores(root),
        _memory(root),
        read_limits(root),
        _limit(resource.RLIMIT_NOFILE),
        _limit(resource.RLIMIT_NPROC),
    )


def _cores(root: Path) -> Cores:
    devices = root / "sys/devices/system/cpu"
    models = (
        line.partition(":")[2].strip()
        for line in _text(root / "proc/cpuinfo").splitlines()
        if line.startswith("model name")
    )
    # All threads of a physical core list the same siblings.
    siblings = {_text(file) for file in devices.glob("cpu[0-9]*/topology/thread_siblings_list")}
    return Cores(
        os.cpu_count() or 1,
        len(siblings - {""}) or None,
        len(available_core_numbers()),
        available_cores(),
        next(models, None),
        _text(devices / "cpu0/cpufreq/scaling_governor").strip() or None,
        os.getloadavg()[0],
    )


def _memory(root: Path) -> Memory:
    sizes = {
        name: int(words[0]) * 1024
        for name, _, rest in (
            line.partition(":") for line in _text(root / "proc/meminfo").splitlines()
        )
        if (words := rest.split())
    }
    total = sizes.get("MemTotal")
    if total is None and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    shm_total = shm_free = None
    if (root / "dev/shm").is_dir():
        shm = os.statvfs(root / "dev/shm")
        shm_total, shm_free = shm.f_blocks * shm.f_frsize, shm.f_bavail * shm.f_frsize
    return Memory(total, sizes.get("MemAvailable"), shm_total, shm_free)


def _surroundings(root: Path) -> str | None:
    if "microsoft" in _text(root / "proc/version").lower():
        return "WSL"
    for file, name in _CONTAINERS.items():
        if (root / file).exists():
            return name
    groups = _text(root / "proc/1/cgroup")
    return next((name for part, name in _CONTAINER_GROUPS.items() if part in groups), None)


def _limit(kind: int) -> Limit:
    soft, hard = (
        None if number == resource.RLIM_INFINITY else number for number in resource.getrlimit(kind)
    )
    return Limit(soft, hard)


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
