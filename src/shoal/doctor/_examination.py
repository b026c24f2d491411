"""All that is found out about a machine, in one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shoal.doctor._advice import Finding, findings
from shoal.doctor._backend_checks import BACKENDS, BackendCheck, check_backends
from shoal.doctor._extras import Extra, PackageStatus, read_extras, read_required
from shoal.doctor._machine import Machine, read_machine
from shoal.doctor._software import Software, read_software

__all__ = ["Examination", "examine"]

_EXTRAS_OF_BACKENDS = {"remote": "remote", "ray": "ray"}


@dataclass(frozen=True)
class Examination:
    """What a machine is, and whether Shoal works on it."""

    machine: Machine
    software: Software
    required: list[PackageStatus]
    extras: list[Extra]
    backends: list[BackendCheck]
    findings: list[Finding]

    @property
    def is_well(self) -> bool:
        """Whether nothing that Shoal needs is broken."""
        return all(finding.level != "problem" for finding in self.findings)

    def as_data(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"is_well": self.is_well, **asdict(self)}


def examine(
    seconds: float = 2.0,
    backends: Sequence[str] = BACKENDS[:-1],
    told: Callable[[str], None] = lambda _: None,
) -> Examination:
    """Examine this machine.

    Args:
        seconds: How long backends are timed, all together.
        backends: Which are tried, if their extras are here; ``ray`` starts a cluster for it.
        told: Called with the name of the backend that is being tried.
    """
    machine, software = read_machine(), read_software()
    required, extras = read_required(), read_extras()
    skipped = {
        name: BackendCheck(name, "skipped", None, f"needs an extra: {extra.install}")
        for name in backends
        for extra in extras
        if extra.name == _EXTRAS_OF_BACKENDS.get(name) and extra.state != "present"
    }
    names = [name for name in backends if name not in skipped]
    tried = check_backends(names, seconds / max(1, len(names)), told=told)
    outcomes = [*tried, *skipped.values()]
    outcomes.sort(key=lambda outcome: BACKENDS.index(outcome.backend))
    return Examination(
        machine,
        software,
        required,
        extras,
        outcomes,
        findings(machine, software, required, extras, outcomes),
    )
