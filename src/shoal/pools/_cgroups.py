"""What the control groups of this process allow it: processor time, memory, processes.

A process is in one group, or, with version 1, in one for each kind of limit. What holds is the
smallest limit of that group and of those around it, as far as they can be seen from here: in a
container the outermost group that is visible is often the container's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GroupLimits", "read_cpu_limit", "read_limits"]

_NO_LIMIT = 1 << 60
"""Version 1 says "no limit" of memory by a number of about this size."""


@dataclass(frozen=True)
class GroupLimits:
    """What is allowed; None where there is no limit."""

    cpus: float | None
    """Processor time, in seconds of all cores together for each second."""

    memory: int | None
    """Bytes."""

    processes: int | None
    """Processes and threads, all together."""


def read_limits(root: Path = Path("/")) -> GroupLimits:
    """The limits of this process.

    Args:
        root: Where the file system begins.
    """
    memory = _smallest(root, "memory", ("memory.max", "memory.limit_in_bytes"))
    return GroupLimits(
        read_cpu_limit(root),
        memory if memory is not None and memory < _NO_LIMIT else None,
        _smallest(root, "pids", ("pids.max",)),
    )


def read_cpu_limit(root: Path = Path("/")) -> float | None:
    """The cores' worth of time that this process is granted, or None where there is no limit.

    Args:
        root: Where the file system begins.
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
    """The folders of the groups that limit this process in this, from the innermost outwards."""
    groups = _groups(root)
    for mount, inside, controllers in _hierarchies(root):
        if controllers and controller not in controllers:
            continue
        group = groups.get(controller if controllers else "")
        yield from _upwards(root / mount.lstrip("/"), inside, group)


def _upwards(top: Path, inside: str, group: str | None) -> Iterator[Path]:
    """From a group's folder up to where its hierarchy is mounted, of which ``inside`` is shown."""
    if group is not None and ".." not in Path(group).parts:
        try:
            below = Path(group).relative_to(inside)
        except ValueError:  # it is outside of what is mounted here
            below = Path()
        for parent in (below, *below.parents):
            if parent != Path():
                yield top / parent
    yield top


def _groups(root: Path) -> dict[str, str]:
    """The group of this process, by what it limits; that of version 2 under an empty name."""
    groups = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, group = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), group))
    return groups


def _hierarchies(root: Path) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Where groups are mounted, which part of them, and what they limit; of version 2 nothing."""
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
