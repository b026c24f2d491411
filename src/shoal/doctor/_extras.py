"""Which extras of Shoal are installed, and how to install the others.

The packages of an extra are read from the metadata of the installed distribution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import Literal

from shoal.errors import MissingExtraError

try:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
except ImportError as error:
    raise MissingExtraError('packaging is not installed: pip install "shoal[cli]"') from error

__all__ = ["Extra", "PackageStatus", "State", "read_extras", "read_required"]

State = Literal["present", "missing", "unsuitable"]

_DEVELOPER_EXTRA = "dev"
"""The extra for developers. It, and the extras that it names, are not listed."""

_NOTES = {"atari": "installs ale-py, which is GPL-2.0 software"}


@dataclass(frozen=True)
class PackageStatus:
    """A required package."""

    name: str
    wanted: str
    """The version specifier, such as ``>=2.0``; empty if any version will do."""
    version: str | None
    """The installed version, if any."""
    state: State


@dataclass(frozen=True)
class Extra:
    """An optional feature, and the packages that it requires."""

    name: str
    parts: tuple[PackageStatus, ...]
    state: State
    """The worst state of its packages."""
    install: str
    """The command that installs it."""
    note: str | None = None


def read_extras(package: str = "shoal") -> list[Extra]:
    """Return the extras of a package, except those for developers and those that bundle others.

    >>> [extra.name for extra in read_extras() if extra.name in ("atari", "all", "dev")]
    ['atari']
    """
    names = metadata(package).get_all("Provides-Extra") or []
    internal = {_DEVELOPER_EXTRA, *_included_extras(package, _DEVELOPER_EXTRA)}
    return [
        _extra(package, name)
        for name in names
        if name not in internal and not _included_extras(package, name)
    ]


def read_required(package: str = "shoal") -> list[PackageStatus]:
    """Return the status of the packages that a package requires without any extra."""
    return list(_parts(package, "", set()))


def _extra(package: str, name: str) -> Extra:
    parts = tuple(dict.fromkeys(_parts(package, name, set())))
    states = {part.state for part in parts}
    state: State = next(
        (worst for worst in ("missing", "unsuitable") if worst in states), "present"
    )
    install = f'pip install "{package}[{name}]"'
    return Extra(name, parts, state, install, _NOTES.get(name))


def _included_extras(package: str, extra: str) -> set[str]:
    """Return the extras of the same package that an extra includes."""
    return {
        other
        for requirement in _requirements(package, extra)
        if canonicalize_name(requirement.name) == canonicalize_name(package)
        for other in requirement.extras
    }


def _parts(package: str, extra: str, seen: set[tuple[str, str]]) -> Iterator[PackageStatus]:
    """Yield the packages that an extra requires, including those of extras it names elsewhere."""
    if (package, extra) in seen:
        return
    seen.add((package, extra))
    for requirement in _requirements(package, extra):
        part = _part(requirement)
        yield part
        if part.version is not None:
            for other in sorted(requirement.extras):
                yield from _parts(requirement.name, other, seen)


def _requirements(package: str, extra: str) -> list[Requirement]:
    """Return the requirements that an extra adds; without an extra, those of the package."""
    all_requirements = [Requirement(text) for text in requires(package) or []]
    return [
        requirement
        for requirement in all_requirements
        if _applies(requirement, extra) and not (extra and _applies(requirement, ""))
    ]


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _part(requirement: Requirement) -> PackageStatus:
    wanted = str(requirement.specifier)
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return PackageStatus(requirement.name, wanted, None, "missing")
    # If a pre-release is installed, it counts.
    fits = requirement.specifier.contains(installed, prereleases=True)
    return PackageStatus(requirement.name, wanted, installed, "present" if fits else "unsuitable")
