"""The interface of contenders, and how their speed is measured."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any, ClassVar

from gymnasium import Space
from gymnasium.vector.utils import batch_space, iterate

from shoal._bench.workload import Workload

__all__ = [
    "SEED",
    "Contender",
    "Lockstep",
    "Vector",
    "action_batches",
    "action_lists",
    "open_lockstep",
]

SEED = 0

_MOST_ACTIONS = 262_144

# Reading the clock once per millisecond costs nothing, even if a step takes only 100 ns.
_SECONDS_BETWEEN_CLOCK_READINGS = 0.001


class Vector(ABC):
    """Environments that a contender has created and reset for one cell.

    Outside of ``step_many`` they must be idle, because another contender is being measured.
    """

    note: str = ""
    """How the contender steps these environments, if it chose between several configurations."""

    @abstractmethod
    def step_many(self, seconds: float) -> tuple[int, float]:
        """Step for about this time; return the environment steps and the seconds that they took."""

    @abstractmethod
    def close(self) -> None:
        """Close the environments, and stop every process that steps them."""


class Lockstep(Vector):
    """Environments that are all stepped at once.

    Args:
        step: Steps every environment once, with one of the batches.
        batches: Action batches, one action for each environment; used cyclically.
        close: Called once, at the end.
        num_envs: The number of environments; by default the length of a batch.
    """

    def __init__(
        self,
        step: Callable[[Any], object],
        batches: Sequence[Any],
        close: Callable[[], object],
        num_envs: int | None = None,
    ) -> None:
        self._step = step
        self._num_envs = len(batches[0]) if num_envs is None else num_envs
        self._batches = cycle(batches)
        self._close = close

    def step_many(self, seconds: float) -> tuple[int, float]:
        """Step repeatedly until the time has passed, at least once."""
        step, batches = self._step, self._batches
        calls, burst, elapsed = 0, 1, 0.0
        start = time.perf_counter()
        while elapsed < seconds:
            for batch in islice(batches, burst):
                step(batch)
            calls += burst
            elapsed = time.perf_counter() - start
            burst = max(1, int(_SECONDS_BETWEEN_CLOCK_READINGS * calls / elapsed))
        return calls * self._num_envs, elapsed

    def close(self) -> None:
        """Call the ``close`` function."""
        self._close()


class Contender(ABC):
    """A vector, or another implementation that steps many environments.

    The runner reads the attributes; ``open`` runs in the contender's process, and only it may
    import the contender's packages. Contenders must be picklable.
    """

    name: str
    packages: ClassVar[tuple[str, ...]] = ("gymnasium", "numpy")
    """The distributions whose versions are reported."""

    def supports(self, workload: str) -> bool:  # noqa: ARG002
        """Whether it can step this workload."""
        return True

    @abstractmethod
    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create ``num_envs`` environments and reset them."""


def open_lockstep(envs: Any, workload: Workload) -> Lockstep:
    """Reset ``envs``, which has Gymnasium's vector interface, and prepare it for stepping."""
    envs.reset(seed=SEED)
    batches = action_batches(workload, envs.num_envs)
    return Lockstep(envs.step, batches, envs.close, envs.num_envs)


def action_batches(workload: Workload, num_envs: int, count: int = 64) -> list[Any]:
    """Return at most ``count`` batches of random valid actions, one for each environment.

    A batch is an array, except for nested action spaces.
    """
    _, batches = _sampled(workload, num_envs, count)
    return batches


def action_lists(workload: Workload, num_envs: int, count: int = 64) -> list[list[Any]]:
    """Return the actions of ``action_batches``, each batch as a list of single actions."""
    space, batches = _sampled(workload, num_envs, count)
    return [list(iterate(space, batch)) for batch in batches]


def _sampled(workload: Workload, num_envs: int, count: int) -> tuple[Space[Any], list[Any]]:
    count = max(2, min(count, _MOST_ACTIONS // num_envs))
    env = workload.make()
    try:
        space = batch_space(env.action_space, num_envs)
        space.seed(SEED)
        return space, [space.sample() for _ in range(count)]
    finally:
        env.close()
