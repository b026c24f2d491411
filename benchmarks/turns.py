"""Cells that do not compare vectors of workloads: samplers take turns in one process.

A module named in ``SPECIAL`` has a function ``samplers(workload, size, settings)`` that returns,
for every contender, a function that makes its sampler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from benchmarks.alone import call_alone
from shoal._bench.contenders.base import Vector
from shoal._bench.process import ContenderError
from shoal._bench.results import Cell
from shoal._bench.runner import Settings

__all__ = [
    "SPECIAL",
    "Measuring",
    "Sampler",
    "Samplers",
    "VectorSampler",
    "measure_special",
    "rotated",
    "take_turns",
]

_WARM_UP_SECONDS = 0.05
_TIMEOUT = 3600.0


@dataclass(frozen=True)
class Measuring(Settings):
    """How a cell is measured."""

    device: str = "cpu"
    """The device of networks, ``"cpu"`` or ``"cuda"``."""


class Sampler(ABC):
    """A contender in a process that it shares with the others of its cell."""

    @abstractmethod
    def sample(self, seconds: float) -> float:
        """Measure for about this time and return a rate, or a value in another unit."""

    def close(self) -> None:  # noqa: B027 - most samplers hold no resources
        """Release all resources."""


Samplers: TypeAlias = Mapping[str, Callable[[], Sampler]]
"""The function that makes the sampler of each contender."""


class VectorSampler(Sampler):
    """Samples the steps per second of a vector."""

    def __init__(self, vector: Vector) -> None:
        self._vector = vector
        vector.step_many(_WARM_UP_SECONDS)

    def sample(self, seconds: float) -> float:
        """Step for this time and return the environment steps per second."""
        steps, elapsed = self._vector.step_many(seconds)
        return steps / elapsed

    def close(self) -> None:
        """Close the vector."""
        self._vector.close()


class _Special(NamedTuple):
    module: str
    has_process: bool = True
    """Whether the cell is measured in a new process."""


_COSTS = _Special("benchmarks.costs")
_LEARNING = _Special("benchmarks.learning.cells")
_LIVE = _Special("benchmarks.live")
_REMOTE = _Special("benchmarks.remote.cells", has_process=False)
_GOALS = _Special("benchmarks.learning.goals", has_process=False)

SPECIAL: Mapping[str, _Special] = {
    **dict.fromkeys(("step-overhead", "startup", "worker-memory"), _COSTS),
    **dict.fromkeys(("VecFrameStack", "VecNormalize"), _Special("benchmarks.wrappers")),
    "PPO-of-SB3": _Special("benchmarks.training", has_process=False),
    **dict.fromkeys(
        ("pong-start", "pong-first-step"), _Special("benchmarks.atari_start", has_process=False)
    ),
    **dict.fromkeys(("march", "pettingzoo-hockey"), _Special("benchmarks.pettingzoo")),
    **dict.fromkeys(
        (
            "live-cartpole-inline",
            "live-cartpole-kernel",
            "live-hockey-kernel",
            "live-burn1ms-process",
            "live-pong-process",
        ),
        _LIVE,
    ),
    **dict.fromkeys(("remote-step", "remote-image", "recv-beside-slow", "two-groups"), _REMOTE),
    **dict.fromkeys(
        ("collection", "SAC-updates", "DQN-updates", "PPO", "curriculum", "evaluation"), _LEARNING
    ),
    **dict.fromkeys(("cartpole_dddqn", "pendulum_sac"), _GOALS),
}
"""The module of the samplers of each workload that is not one of ``WORKLOADS``."""


def measure_special(workload: str, size: int, names: Collection[str], settings: Measuring) -> Cell:
    """Measure a cell of one of the ``SPECIAL`` workloads."""
    special = SPECIAL[workload]
    arguments = special.module, workload, size, tuple(names), settings
    if not special.has_process:
        return take_turns(*arguments)
    try:
        return call_alone(take_turns, *arguments, timeout=_TIMEOUT)
    except ContenderError as error:
        return Cell(workload, size, [*names], failures=dict.fromkeys(names, str(error)))


def take_turns(
    module: str, workload: str, size: int, names: Collection[str], settings: Measuring
) -> Cell:
    """Let the samplers of these contenders take turns for all rounds.

    A contender that raises an exception is reported in the cell; the others continue.
    """
    makers: Samplers = import_module(module).samplers(workload, size, settings)
    cell = Cell(workload, size, [name for name in makers if name in names])
    samplers: dict[str, Sampler] = {}
    with ExitStack() as resources:

        def attempt(name: str, act: Callable[[str], Any]) -> None:
            try:
                act(name)
            except Exception as error:
                cell.failures[name] = " ".join(f"{type(error).__name__}: {error}".split())
                cell.rates.pop(name, None)
                samplers.pop(name, None)

        def make(name: str) -> None:
            samplers[name] = sampler = makers[name]()
            resources.callback(sampler.close)
            cell.rates[name] = []

        def take_round(name: str) -> None:
            cell.rates[name].append(samplers[name].sample(settings.seconds))

        for name in cell.contenders:
            attempt(name, make)
        for turn in range(settings.rounds):
            for name in rotated(list(samplers), turn):
                attempt(name, take_round)
    return cell


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """Rotate names by the number of the round, so that each takes every place equally often."""
    first = turn % len(names) if names else 0
    return [*names[first:], *names[:first]]
