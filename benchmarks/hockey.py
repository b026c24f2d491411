"""Hockey next to Box2D, and to itself on one thread."""

from __future__ import annotations

from pathlib import Path

from benchmarks.judging import rate, times
from benchmarks.required import measure_required, worth_of_threads
from shoal._bench.runner import Settings

__all__ = ["REQUIRED", "measure_hockey"]

_ALL, _ONE = "shoal-hockey", "shoal-hockey-1"
_SLOTS = 4096

REQUIRED = (
    rate(_ONE, "hockey", _SLOTS, at_least=3.0),
    times(_ONE, "box2d", "hockey", _SLOTS, at_least=500.0),
    rate(_ONE, "hockey-strong", _SLOTS, at_least=2.0),
)
"""What must be reached on any number of cores."""

_LEGEND = (
    "In hockey both players act at random, in hockey-strong both are BasicOpponents. box2d is a "
    "minimal scene of Box2D 2.3.10 with drives, observations and rewards in Python "
    "(benchmarks/hockey_scene.py), on one core; shoal-hockey-1 is on one thread. Both of Shoal's "
    "give views of their memory (copy=False)."
)


def measure_hockey(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``hockey`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    figures = [*REQUIRED, *worth_of_threads(_ALL, _ONE, "hockey", 2 * _SLOTS)]
    return measure_required("hockey", figures, _LEGEND, settings, output)
