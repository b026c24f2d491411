"""What this machine gives this process: cores, memory, and how much of them it may use."""

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
"""Files by which a container is known."""

_CONTAINER_GROUPS = {"kubepods": "Kubernetes", "docker": "Docker", "lxc": "LXC"}
"""Names in the groups of the first process by which one is known."""


@dataclass(frozen=True)
class Cores:
    """Cores, as the system counts them: those that share one physical core count each."""

    logical: int
    physical: int | None
    allowed: int
    """Those that this process may run on, by its affinity."""
    usable: int
    """As many as Shoal keeps busy: by affinity, and by the limits of control groups."""
    model: str | None
    governor: str | None
    """Who decides how fast the first core runs."""
    load: float
    """How many programs wanted a core in the last minute, on average."""


@dataclass(frozen=True)
class Memory:
    """Memory, in bytes; None where it is not known."""

    total: int | None
    available: int | None
    shm_total: int | None
    """Of ``/dev/shm``, where other libraries keep what they share. Shoal does not need it."""
    shm_free: int | None


@dataclass(frozen=True)
class Limit:
    """How much of something this process may have, and up to where it may raise that itself."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True)
class Machine:
    """A machine, as one process on it sees it."""

    system: str
    surroundings: str | None
    """Such as ``Docker`` or ``WSL``; None where nothing is known of any."""
    cores: Cores
    memory: Memory
    groups: GroupLimits
    open_files: Limit
    processes: Limit


def read_machine(root: Path = Path("/")) -> Machine:
    """What this process sees of its machine.

    Args:
        root: Where the file system begins.
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
    # All threads of a physical core name the same siblings.
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
    told = {
        name: int(words[0]) * 1024
        for name, _, rest in (
            line.partition(":") for line in _text(root / "proc/meminfo").splitlines()
        )
        if (words := rest.split())
    }
    total = told.get("MemTotal")
    if total is None and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    shm_total = shm_free = None
    if (root / "dev/shm").is_dir():
        shm = os.statvfs(root / "dev/shm")
        shm_total, shm_free = shm.f_blocks * shm.f_frsize, shm.f_bavail * shm.f_frsize
    return Memory(total, told.get("MemAvailable"), shm_total, shm_free)


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
