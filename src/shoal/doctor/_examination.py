"""The full examination: facts about the machine, checks of backends, and findings."""

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
    """A description of the machine and the installation, with checks and findings."""

    machine: Machine
    software: Software
    required: list[PackageStatus]
    extras: list[Extra]
    backends: list[BackendCheck]
    findings: list[Finding]

    @property
    def is_well(self) -> bool:
        """Whether no finding is a problem."""
        return all(finding.level != "problem" for finding in self.findings)

    def as_data(self) -> dict[str, Any]:
        """Return the examination as plain data, ready for JSON."""
        return {"is_well": self.is_well, **asdict(self)}


def examine(
    seconds: float = 2.0,
    backends: Sequence[str] = BACKENDS[:-1],
    on_start: Callable[[str], None] = lambda _: None,
    *,
    told: Callable[[str], None] | None = None,
) -> Examination:
    """Examine this machine and the installation.

    Args:
        seconds: How long to measure the speed of backends, in total.
        backends: The backends to check; those whose extra is missing are skipped. ``ray`` starts a
            temporary cluster.
        on_start: Called with the name of each backend before it is checked.
        told: An older name of ``on_start``.
    """
    machine, software = read_machine(), read_software()
    required, extras = read_required(), read_extras()
    skipped = {
        name: BackendCheck(name, "skipped", None, f"requires an extra: {extra.install}")
        for name in backends
        for extra in extras
        if extra.name == _EXTRAS_OF_BACKENDS.get(name) and extra.state != "present"
    }
    names = [name for name in backends if name not in skipped]
    checked = check_backends(names, seconds / max(1, len(names)), on_start=told or on_start)
    outcomes = [*checked, *skipped.values()]
    outcomes.sort(key=lambda outcome: BACKENDS.index(outcome.backend))
    return Examination(
        machine,
        software,
        required,
        extras,
        outcomes,
        findings(machine, software, required, extras, outcomes),
    )
