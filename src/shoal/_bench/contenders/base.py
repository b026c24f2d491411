"""What a contender is: something that steps many environments, and how its speed is taken."""

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

# Looking at the clock once in so many seconds costs nothing, even where a step takes 100 ns.
_SECONDS_BETWEEN_CLOCK_READINGS = 0.001


class Vector(ABC):
    """What a contender has opened for one cell: environments that are reset and can be stepped.

    Outside of ``step_many`` none of them is at work: another contender is being measured.
    """

    note: str = ""
    """How the contender steps these environments, where it had to choose."""

    @abstractmethod
    def step_many(self, seconds: float) -> tuple[int, float]:
        """Step for about so long; returns environment steps and the seconds that they took."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the environments, and of every process that steps them."""


class Lockstep(Vector):
    """Environments that are stepped all at once.

    Args:
        step: Steps every environment once, with one of the batches.
        batches: Action batches, one action for each environment; used in turn, over and over.
        close: Called once, at the end.
        num_envs: How many environments; by default as many as a batch has actions.
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
        """Step as often as fits into the time, at least once."""
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
        """Close what the contender said."""
        self._close()


class Contender(ABC):
    """One way to step many environments.

    The runner reads the attributes; ``open`` is called in a process of the contender's own, and
    alone may import the contender's packages. Contenders travel there by pickle.
    """

    name: str
    packages: ClassVar[tuple[str, ...]] = ("gymnasium", "numpy")
    """The distributions whose versions a report should state."""

    def supports(self, workload: str) -> bool:  # noqa: ARG002
        """Whether it can step this workload at all."""
        return True

    @abstractmethod
    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make so many environments of this kind and reset them."""


def open_lockstep(envs: Any, workload: Workload) -> Lockstep:
    """Reset ``envs``, which has Gymnasium's vector interface, and make it ready to be stepped."""
    envs.reset(seed=SEED)
    batches = action_batches(workload, envs.num_envs)
    return Lockstep(envs.step, batches, envs.close, envs.num_envs)


def action_batches(workload: Workload, num_envs: int, count: int = 64) -> list[Any]:
    """Sample valid actions: batches with one for each environment, ``count`` of them at most.

    A batch is an array, unless the actions are nested.
    """
    _, batches = _sampled(workload, num_envs, count)
    return batches


def action_lists(workload: Workload, num_envs: int, count: int = 64) -> list[list[Any]]:
    """Sample the same actions, as lists of single ones."""
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
