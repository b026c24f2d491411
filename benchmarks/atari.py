"""Atari games next to ale-py, EnvPool, Gymnasium, Stable-Baselines3, and themselves on one core."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.alone import call_alone
from benchmarks.judging import Bench, Figure, times
from benchmarks.required import measure_required
from shoal._bench import machine
from shoal._bench.contenders.base import SEED
from shoal._bench.runner import Settings

__all__ = ["REQUIRED", "measure_atari"]

_ALL, _ONE = "shoal-atari", "shoal-atari-1"
_RIVALS = {
    "ale-py": 1.25,
    "envpool-atari": 1.4,
    "gymnasium-atari": 1.5,
    "sb3-atari": 1.5,
}
"""How many times faster than each of them Shoal must be, stepping."""

_STARTED = 64
_ATTEMPTS = 3

_WORTH = {2: 1.8, 16: 13.0}
"""What so many cores must be worth, next to one of them."""


def _seconds_to_start(which: str, steps: int) -> float:
    """Make many games, reset them with a seed, and step them so often."""
    import numpy as np

    if which == "ale-py":
        from ale_py.vector_env import AtariVectorEnv
    else:
        from shoal.atari import AtariVectorEnv  # type: ignore[assignment]
    begun = time.perf_counter()
    envs: Any = AtariVectorEnv("pong", _STARTED)
    envs.reset(seed=SEED)
    for _ in range(steps):
        envs.step(np.zeros(_STARTED, np.int64))
    seconds = time.perf_counter() - begun
    envs.close()
    return seconds


def _starting(steps: int, at_least: float) -> Figure:
    def ratio(_: Bench) -> float:
        seconds = {
            which: median(call_alone(_seconds_to_start, which, steps) for _ in range(_ATTEMPTS))
            for which in ("ale-py", "shoal")
        }
        return seconds["ale-py"] / seconds["shoal"]

    what = "made and reset with a seed" + (", and stepped once" if steps else "")
    return Figure(f"pong {_STARTED}: {what}, times ale-py", ratio, at_least)


REQUIRED = (
    *(
        times(_ALL, rival, game, num_envs, at_least=at_least)
        for game in ("pong", "breakout")
        for num_envs in (8, 32)
        for rival, at_least in _RIVALS.items()
    ),
    *(times(_ALL, "ale-py", f"{game}-resets", 32, at_least=1.5) for game in ("pong", "breakout")),
    _starting(0, at_least=5.0),
)
"""What must be reached on two cores."""

_LEGEND = (
    "All of them: four frames a step, the brighter of two, 84 x 84, grey, a stack of four. ale-py "
    "has as many threads as there are cores. gymnasium-atari and sb3-atari are Gymnasium's "
    "wrappers in their worker processes, a process for each game. In -resets a slot is reset with "
    "a probability of 1/50 before each step. shoal-atari-1 is in one process. Making and resetting "
    "is measured in processes of their own, three times each."
)


def measure_atari(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``atari`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    cores = machine.core_count()
    figures = [*REQUIRED, _starting(1, at_least=0.0)]
    if cores in _WORTH:
        worth = partial(times, _ALL, _ONE, "pong", 8 * cores, at_least=_WORTH[cores])
        figures.append(worth())
    return measure_required("atari", figures, _LEGEND, settings, output)
