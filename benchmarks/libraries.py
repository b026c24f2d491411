"""Other libraries on Shoal's vectors, next to what they come with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from shoal._bench.runner import Settings

__all__ = ["LIBRARIES", "measure_libraries"]


class Library(NamedTuple):
    """Where a library's figures are measured, and what must be installed for that."""

    needs: str
    seconds: float
    """How long a contender is measured in a round: as long as one batch of it lasts, at least."""

    @property
    def is_there(self) -> bool:
        """Whether it can be measured with this interpreter."""
        return find_spec(self.needs) is not None


LIBRARIES = {
    "ray": Library("ray", 0.5),
    "torchrl": Library("torchrl", 0.5),
    "tianshou": Library("tianshou", 0.5),
    "pettingzoo": Library("supersuit", 0.1),
    # RLlib asks for a Gymnasium of its own choice, so it has an environment of its own.
    "rllib": Library("tree", 1.0),
}
"""By the names of the modules here that measure them, by ``measure_NAME``."""


def measure_libraries(names: Collection[str], rounds: int, output: Path) -> bool:
    """Measure, print tables, and write a JSON and a Markdown for each; whether all was reached.

    Libraries that this interpreter has not are left out, and named.
    """
    reached = True
    for name in names:
        library = LIBRARIES[name]
        if not library.is_there:
            print(f"{name} is left out: {library.needs} is not installed", file=sys.stderr)
            continue
        measure: Callable[[Settings, Path], bool] = getattr(
            import_module(f"benchmarks.{name}"), f"measure_{name}"
        )
        reached &= measure(Settings(rounds=rounds, seconds=library.seconds), output)
    return reached
