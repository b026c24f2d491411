"""``shoal doctor``: check the installation on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shoal._cli.output import AsJson, print_json, report_user_errors
from shoal._formatting import size

if TYPE_CHECKING:
    from shoal.doctor._advice import Finding
    from shoal.doctor._backend_checks import BackendCheck
    from shoal.doctor._examination import Examination
    from shoal.doctor._extras import Extra, PackageStatus
    from shoal.doctor._machine import Limit, Machine
    from shoal.doctor._software import Software

__all__ = ["doctor"]

_STYLES = {
    "present": "green",
    "works": "green",
    "missing": "dim",
    "skipped": "dim",
    "unsuitable": "yellow",
    "fails": "bold red",
    "problem": "bold red",
    "warning": "yellow",
    "note": "cyan",
}


def doctor(
    seconds: Annotated[
        float, typer.Option(min=0, max=600, help="Total seconds to measure the speed of backends.")
    ] = 2.0,
    ray: Annotated[
        bool, typer.Option("--ray", help="Also check Ray, which starts a temporary cluster.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the installation and run every backend on this machine."""
    with report_user_errors():
        from shoal.doctor import examine
        from shoal.doctor._backend_checks import BACKENDS

        names = [name for name in BACKENDS if ray or name != "ray"]
        with Console(stderr=True).status("Examining this machine ...") as status:
            examination = examine(
                seconds, names, lambda name: status.update(f"Checking the {name} backend ...")
            )
    if as_json:
        print_json(examination.as_data())
    else:
        _show(examination)
    if not examination.is_well:
        raise typer.Exit(1)


def _show(examination: Examination) -> None:
    from shoal.doctor._backend_trial import ENVIRONMENT, NUM_ENVS

    software = examination.software
    console = Console(highlight=False)
    console.print(Text(f"Shoal {software.shoal}", style="bold"))
    backends = f"Backends ({NUM_ENVS} x {ENVIRONMENT}, same seeds)"
    sections: list[tuple[str, RenderableType]] = [
        ("Machine", _facts(_machine_facts(examination.machine))),
        ("Software", _facts(_software_facts(software, examination.required))),
        ("Extras", _extras(examination.extras)),
        (backends, _backends(examination.backends)),
    ]
    if examination.findings:
        sections.append(("Findings", _findings(examination.findings)))
    for title, content in sections:
        console.print()
        console.print(Text(title, style="bold"))
        console.print(Padding(content, (0, 0, 0, 2), expand=False))
    console.print()
    if examination.is_well:
        console.print(Text("Everything that Shoal needs is installed and works.", style="green"))
    else:
        console.print(
            Text("Shoal does not work correctly; see the problems above.", style="bold red")
        )


def _facts(facts: Iterable[tuple[str, str]]) -> Table:
    table = _grid(2)
    for name, text in facts:
        table.add_row(Text(name, style="dim"), Text(text))
    return table


def _machine_facts(machine: Machine) -> Iterator[tuple[str, str]]:
    cores, memory, groups = machine.cores, machine.memory, machine.groups
    where = f", in {machine.surroundings}" if machine.surroundings else ""
    yield "system", machine.system + where
    if cores.model:
        yield "processor", cores.model
    physical = f" ({cores.physical} physical)" if cores.physical else ""
    yield (
        "cores",
        f"{cores.logical}{physical}, {cores.allowed} allowed by affinity, {cores.usable} used",
    )
    if cores.governor:
        yield "governor", cores.governor
    limits = [
        f"{groups.cpus:g} CPUs" if groups.cpus is not None else "",
        f"{size(groups.memory)} of memory" if groups.memory is not None else "",
        f"{groups.processes:,} processes" if groups.processes is not None else "",
    ]
    yield "control group", ", ".join(filter(None, limits)) or "no limits"
    yield "memory", f"{size(memory.total)}, {size(memory.available)} available"
    if memory.shm_total is not None:
        yield "/dev/shm", f"{size(memory.shm_total)}, {size(memory.shm_free)} free"
    yield "open files", _limit(machine.open_files)
    yield "processes", _limit(machine.processes)


def _software_facts(
    software: Software, required: Iterable[PackageStatus]
) -> Iterator[tuple[str, str]]:
    yield "Python", f"{software.python}, {software.executable}"
    yield "packages", ", ".join(f"{part.name} {part.version or 'missing'}" for part in required)
    default, *others = software.start_methods
    yield "start method", f"{default} (or {', '.join(others)})"
    yield "worker wake-up", software.doorbell
    yield "C compiler", software.compiler.version or f"not found ({software.compiler.command})"


def _extras(extras: Iterable[Extra]) -> Table:
    table = _grid(3)
    for extra in extras:
        table.add_row(extra.name, _word(extra.state), _extra_details(extra))
    return table


def _extra_details(extra: Extra) -> Text:
    if extra.state == "present":
        text = Text(", ".join(f"{part.name} {part.version}" for part in extra.parts))
    else:
        text = Text(extra.install)
        for line in _missing_parts(extra):
            text.append(f"\n{line}", style="dim")
    if extra.note:
        text.append(f"\n{extra.note}", style="dim")
    return text


def _missing_parts(extra: Extra) -> Iterator[str]:
    missing = [part.name for part in extra.parts if part.state == "missing"]
    if missing:
        yield f"not installed: {', '.join(missing)}"
    for part in extra.parts:
        if part.state == "unsuitable":
            yield f"{part.name} {part.version} is installed, but {part.wanted} is required"


def _backends(outcomes: Iterable[BackendCheck]) -> Table:
    table = _grid(3)
    for outcome in outcomes:
        details = outcome.problem or f"{outcome.steps_per_second or 0:>12,.0f} steps/s"
        table.add_row(outcome.backend, _word(outcome.state), Text(details))
    return table


def _findings(findings: Iterable[Finding]) -> Table:
    table = _grid(2)
    for finding in findings:
        table.add_row(_word(finding.level), Text(finding.text))
        if finding.advice:
            table.add_row("", Text(f"-> {finding.advice}", style="dim"))
    return table


def _grid(columns: int) -> Table:
    """Return a table without lines whose last column wraps."""
    table = Table.grid(padding=(0, 2))
    for _ in range(columns - 1):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _word(word: str) -> Text:
    return Text(word, style=_STYLES[word])


def _limit(limit: Limit) -> str:
    def shown(number: int | None) -> str:
        return "no limit" if number is None else f"{number:,}"

    soft, hard = shown(limit.soft), shown(limit.hard)
    return soft if soft == hard else f"{soft} (can be raised to {hard})"
