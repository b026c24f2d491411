"""The Ray pool next to worker processes, on the cores of one machine."""

from __future__ import annotations

from pathlib import Path

from benchmarks.judging import times
from benchmarks.required import measure_required
from shoal._bench.runner import Settings

__all__ = ["REQUIRED", "measure_ray"]

REQUIRED = (times("shoal-ray", "shoal-process", "burn1ms", 64, at_least=0.85),)

_LEGEND = (
    "shoal-ray has two actors in a Ray that was started for it; the caller only receives. "
    "shoal-process has a worker process for each core but one, and the caller at work too."
)


def measure_ray(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``ray`` as JSON and Markdown.

    Returns whether the required figure was reached.
    """
    return measure_required("ray", REQUIRED, _LEGEND, settings, output)
