"""Shoal next to Gymnasium and a plain loop on this machine, in less than a minute."""

from __future__ import annotations

from benchmarks import machine
from benchmarks.contenders import CONTENDERS
from benchmarks.render import failure_notes, rate_text, ratio_text
from benchmarks.runner import Runner, Settings
from benchmarks.tables import Table, plain

__all__ = ["demo"]

_PLACES = (
    ("noop", 8),
    ("noop", 128),
    ("cartpole", 8),
    ("cartpole", 128),
    ("image", 32),
    ("dict", 32),
)
_COLUMNS = {
    "loop": "one env, loop",
    "gymnasium-sync": "Gymnasium sync",
    "shoal": "Shoal",
    "shoal-kernel": "Shoal, native",
}


def demo() -> None:
    """Measure a few cells and print them."""
    with Runner([CONTENDERS[name] for name in _COLUMNS], Settings(5, 0.2)) as runner:
        cells = runner.measure_all(_PLACES)
    rows = [
        [
            f"{cell.workload} x {cell.num_envs}",
            *(rate_text(cell, name) for name in _COLUMNS),
            ratio_text(cell, "gymnasium-sync"),
        ]
        for cell in cells
    ]
    here = machine.describe()
    print(f"\nEnvironment steps per second on {here['cpu']}, {here['cores']} cores\n")
    print(plain(Table(["workload", *_COLUMNS.values(), "Shoal / Gymnasium"], rows)))
    for note in failure_notes(cells):
        print(note)
