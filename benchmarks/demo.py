"""A demonstration of a few minutes: a table of throughput, then an agent that learns hockey."""

from __future__ import annotations

from pathlib import Path

from benchmarks.contenders import CONTENDERS
from benchmarks.render import failure_notes, rate_text, ratio_text
from benchmarks.runner import Runner
from shoal._bench import machine
from shoal._bench.runner import Settings
from shoal._bench.tables import Table, plain
from shoal.train import train_single_run

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


_RUNS = "results/demo"


def demo() -> None:
    """Measure and print a few cells, then train and write a plot, a video and a report."""
    _show_throughput()
    _train()


def _train() -> None:
    print("\nPPO learns hockey; Ctrl-C saves the run and stops it.\n", flush=True)
    result = train_single_run("hockey_demo", _RUNS, seed=0)
    folder = Path(result["run_folder"])
    for record in result["evaluation_results"][-2:]:
        print(
            f"against {record['opponent']}: {record['win_rate']:.0%} won "
            f"({record['low']:.0%} to {record['high']:.0%}) in {record['games']} games"
        )
    print(
        f"{result['steps_per_second']:,.0f} environment steps/s including learning; "
        f"{result['seconds']:.0f} s"
    )
    for path in (folder / "plots" / "win_rates.png", folder / "video.mp4", folder / "report.html"):
        if path.exists():
            print(path)


def _show_throughput() -> None:
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
    description = machine.describe()
    where = f"{description['cpu']}, {description['cores']} cores"
    print(f"\nEnvironment steps per second on {where}\n")
    print(plain(Table(["workload", *_COLUMNS.values(), "Shoal / Gymnasium"], rows)))
    for note in failure_notes(cells):
        print(note)
