"""The figures that Shoal must reach, and whether it does on this machine.

A new requirement is a new row of ``REQUIRED``. Those that speak of two cores hold where there are
two.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contenders import CONTENDERS
from benchmarks.judging import Bench, Figure, judge, times, verdict_table
from benchmarks.memory import measure_worker_memory
from benchmarks.overhead import measure_overhead
from benchmarks.render import failure_notes
from benchmarks.runner import Runner
from benchmarks.sb3 import REQUIRED as REQUIRED_OF_SB3
from benchmarks.sb3 import measured_apart
from benchmarks.startup import STARTS, measure_startup
from benchmarks.training import Training
from shoal._bench.runner import Settings
from shoal._bench.tables import plain

__all__ = ["REQUIRED", "check", "matching"]


def _microseconds_per_slot(num_envs: int, at_most: float) -> Figure:
    def overhead(_: Bench) -> float:
        return measure_overhead(num_envs).median

    return Figure(f"noop {num_envs}: us per slot over env.step", overhead, at_most=at_most)


def _seconds_to_start(how: str, num_envs: int, at_most: float) -> Figure:
    def seconds(_: Bench) -> float:
        return measure_startup(how, num_envs).median

    return Figure(f"cartpole {num_envs}: seconds to start, {how}", seconds, at_most=at_most)


def _megabytes_per_worker(at_most: float) -> Figure:
    def megabytes(_: Bench) -> float:
        return measure_worker_memory()

    return Figure("noop: MB for each additional worker", megabytes, at_most=at_most)


REQUIRED = (
    times("shoal-inline", "gymnasium-sync", "noop", 8, at_least=5.0),
    times("shoal-inline", "gymnasium-sync", "noop", 128, at_least=8.0),
    times("shoal-inline", "gymnasium-sync", "image", 32, at_least=1.5),
    times("shoal-inline", "gymnasium-sync", "dict", 32, at_least=4.0),
    times("shoal-inline", "loop", "cartpole", 8, at_least=0.95),
    times("shoal-inline", "loop", "cartpole", 128, at_least=0.95),
    _microseconds_per_slot(128, at_most=0.25),
    times("shoal-process", "gymnasium-async", "noop", 8, at_least=30.0),
    times("shoal-process", "loop", "cartpole", 32, at_least=0.80, cores=2),
    times("shoal-process", "loop", "burn100us", 32, at_least=0.90, cores=2),
    times("shoal-first-come", "gymnasium-async", "burn1ms", 32, at_least=1.3),
    times("shoal-process", "gymnasium-async", "image", 32, at_least=3.0),
    *(_seconds_to_start(how, 64, at_most=2.0) for how in STARTS),
    _megabytes_per_worker(at_most=60.0),
    *REQUIRED_OF_SB3,
)


def matching(text: str, *, slow: bool = False) -> list[Figure]:
    """Choose the required figures whose description contains the text, slow ones only if told."""
    return [figure for figure in REQUIRED if text in figure.what and (slow or not figure.slow)]


def check(settings: Settings, figures: Sequence[Figure] = REQUIRED) -> bool:
    """Measure and print every figure; returns whether all were reached."""
    contests = [figure.contest for figure in figures if figure.contest]
    with Runner(CONTENDERS.values(), settings) as runner:
        bench = Bench(runner, contests, measured_apart(settings, Training()))
        verdicts = judge(figures, bench)
    print(plain(verdict_table(verdicts)))
    for note in failure_notes(list(bench.cells.values())):
        print(note)
    return all(verdict.reached for verdict in verdicts)
