"""Shoal's extras: which are here, and how to get the others.

What an extra consists of is read from the metadata that Shoal was installed with.
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
    raise MissingExtraError('packaging is not installed, run `pip install "shoal[cli]"`') from error

__all__ = ["Extra", "PackageStatus", "State", "read_extras", "read_required"]

State = Literal["present", "missing", "unsuitable"]

_FOR_DEVELOPERS = "dev"
"""The extra that, with those it names, is of no use to users."""

_NOTES = {"atari": "installs ale-py, which is GPL-2.0 software"}


@dataclass(frozen=True)
class PackageStatus:
    """A package that is needed."""

    name: str
    wanted: str
    """Which versions, such as ``>=2.0``; empty where any will do."""
    version: str | None
    """Which one is here, if any."""
    state: State


@dataclass(frozen=True)
class Extra:
    """Something that Shoal can do besides, if these packages are here."""

    name: str
    parts: tuple[PackageStatus, ...]
    state: State
    """That of the part that is worst off."""
    install: str
    """The line that installs it."""
    note: str | None = None


def read_extras(package: str = "shoal") -> list[Extra]:
    """The extras of a package, but for those of its developers and those that bundle others.

    >>> [extra.name for extra in read_extras() if extra.name in ("atari", "all", "dev")]
    ['atari']
    """
    names = metadata(package).get_all("Provides-Extra") or []
    internal = {_FOR_DEVELOPERS, *_named(package, _FOR_DEVELOPERS)}
    return [
        _extra(package, name)
        for name in names
        if name not in internal and not _named(package, name)
    ]


def read_required(package: str = "shoal") -> list[PackageStatus]:
    """What a package cannot do without."""
    return list(_parts(package, "", set()))


def _extra(package: str, name: str) -> Extra:
    parts = tuple(dict.fromkeys(_parts(package, name, set())))
    states = {part.state for part in parts}
    state: State = next(
        (worst for worst in ("missing", "unsuitable") if worst in states), "present"
    )
    install = f'pip install "{package}[{name}]"'
    return Extra(name, parts, state, install, _NOTES.get(name))


def _named(package: str, extra: str) -> set[str]:
    """The other extras of a package that one consists of."""
    return {
        other
        for requirement in _requirements(package, extra)
        if canonicalize_name(requirement.name) == canonicalize_name(package)
        for other in requirement.extras
    }


def _parts(package: str, extra: str, seen: set[tuple[str, str]]) -> Iterator[PackageStatus]:
    """What an extra needs, and what the extras need that it names of other packages."""
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
    """Those that an extra adds here; without an extra, those of the package itself."""
    found = [Requirement(text) for text in requires(package) or []]
    return [each for each in found if _applies(each, extra) and not (extra and _applies(each, ""))]


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _part(requirement: Requirement) -> PackageStatus:
    wanted = str(requirement.specifier)
    try:
        here = version(requirement.name)
    except PackageNotFoundError:
        return PackageStatus(requirement.name, wanted, None, "missing")
    # A release candidate that somebody has installed is meant to be used.
    fits = requirement.specifier.contains(here, prereleases=True)
    return PackageStatus(requirement.name, wanted, here, "present" if fits else "unsuitable")
