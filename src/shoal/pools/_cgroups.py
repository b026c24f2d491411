"""Limits that control groups set for this process: processor time, memory and processes.

A process is in one group, or, with version 1, in one group for each controller. The effective limit
is the smallest one of the group and its visible ancestors. In a container, the outermost visible
group is often that of the container.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GroupLimits", "read_cpu_limit", "read_limits"]

_NO_LIMIT = 1 << 60
"""With version 1, memory limits of at least this size mean that there is no limit."""


@dataclass(frozen=True)
class GroupLimits:
    """The limits of a process; None for no limit."""

    cpus: float | None
    """Processor time, as a number of cores."""

    memory: int | None
    """Bytes."""

    processes: int | None
    """The number of processes and threads."""


def read_limits(root: Path = Path("/")) -> GroupLimits:
    """Return the limits of this process.

    Args:
        root: The root of the file system.
    """
    memory = _smallest(root, "memory", ("memory.max", "memory.limit_in_bytes"))
    return GroupLimits(
        read_cpu_limit(root),
        memory if memory is not None and memory < _NO_LIMIT else None,
        _smallest(root, "pids", ("pids.max",)),
    )


def read_cpu_limit(root: Path = Path("/")) -> float | None:
    """Return the processor time of this process, as a number of cores; None for no limit.

    Args:
        root: The root of the file system.
    """
    quotas = [
        int(words[0]) / int(words[1])
        for folder in _folders(root, "cpu")
        for words in (
            _words(folder / "cpu.max"),
            _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us"),
        )
        if len(words) == 2 and words[0].isdigit() and int(words[1])
    ]
    return min(quotas, default=None)


def _smallest(root: Path, controller: str, names: tuple[str, ...]) -> int | None:
    limits = [
        int(words[0])
        for folder in _folders(root, controller)
        for words in (_words(folder / name) for name in names)
        if len(words) == 1 and words[0].isdigit()
    ]
    return min(limits, default=None)


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of the groups with this controller, from the innermost outwards."""
    groups = _groups(root)
    for mount, inside, controllers in _hierarchies(root):
        if controllers and controller not in controllers:
            continue
        group = groups.get(controller if controllers else "")
        yield from _upwards(root / mount.lstrip("/"), inside, group)


def _upwards(top: Path, inside: str, group: str | None) -> Iterator[Path]:
    """Yield a group's folder and its parents up to the mount point, which shows ``inside``."""
    if group is not None and ".." not in Path(group).parts:
        try:
            below = Path(group).relative_to(inside)
        except ValueError:  # not below the part of the hierarchy that is mounted
            below = Path()
        for parent in (below, *below.parents):
            if parent != Path():
                yield top / parent
    yield top


def _groups(root: Path) -> dict[str, str]:
    """Return the group of this process for each controller; that of version 2 for an empty name."""
    groups = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, group = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), group))
    return groups


def _hierarchies(root: Path) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield mount point, mounted part and controllers (none with version 2) of each hierarchy."""
    for line in _lines(root / "proc/self/mountinfo"):
        fields, _, more = line.partition(" - ")
        if not more.startswith("cgroup"):
            continue
        kind, _, options = more.split(" ", 2)
        _, _, _, inside, mount, *_ = fields.split(" ")
        yield mount, inside, frozenset(options.split(",") if kind == "cgroup" else ())


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _words(file: Path) -> list[str]:
    return " ".join(_lines(file)).split()
