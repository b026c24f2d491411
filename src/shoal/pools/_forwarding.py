"""The base class of pools that change the input or output of another pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from gymnasium import Env
from gymnasium.vector import AutoresetMode

from shoal._spaces import VectorSpaces
from shoal._types import Results
from shoal.pools._base import Batch, Pool, SlotChoice, WorkerState
from shoal.pools._environments import Called

__all__ = ["ForwardingPool", "find_pool"]

AnyPool = TypeVar("AnyPool")
InnerPool = TypeVar("InnerPool", bound=Pool)


class ForwardingPool(Generic[InnerPool]):
    """A pool that forwards every method to another pool.

    Derived classes override the methods that differ. ``options`` are arguments that only some pools
    accept, such as the deadlines of a remote pool.

    Args:
        inner: The pool that steps the environments.
    """

    def __init__(self, inner: InnerPool) -> None:
        self.inner = inner
        self.num_envs = inner.num_envs
        self.spaces: VectorSpaces = inner.spaces
        self.autoreset_mode: AutoresetMode = inner.autoreset_mode
        self.metadata: dict[str, Any] = inner.metadata
        self.render_mode = inner.render_mode
        self.copy = inner.copy
        self.restarts = inner.restarts

    @property
    def envs(self) -> list[Env[Any, Any]] | None:
        """The environments if they are objects of this process, else None."""
        return self.inner.envs

    @property
    def in_flight(self) -> int:
        """How many slots were sent or reset and not yet received."""
        return self.inner.in_flight

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        self.inner.reset(slots, seeds, options)

    def send(self, actions: Any, slots: SlotChoice = None, **options: Any) -> None:
        """Check actions, one for each of these slots, and queue their steps."""
        self.inner.send(actions, slots, **options)

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, and return those that are done."""
        return self.inner.recv(min_slots, timeout, max_slots=max_slots, slots=slots)

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        return self.inner.step(actions)

    def begin_step(self, actions: Any, **options: Any) -> None:
        """Check actions for every slot, and start to step them."""
        self.inner.begin_step(actions, **options)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` started."""
        return self.inner.end_step(timeout)

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots, as a batch, without a step."""
        return self.inner.latest(slots)

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""
        self.inner.drop()

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call a method or a function with each environment, or read an attribute."""
        return self.inner.call(what, *args, slots=slots, **kwargs)

    def worker_states(self) -> list[WorkerState]:
        """Return what drives the slots, the caller included."""
        return self.inner.worker_states()

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment and release all resources; a second call does nothing."""
        self.inner.close(terminate=terminate, timeout=timeout)

    def abandon(self) -> None:
        """Release all resources of a vector that was garbage-collected without being closed."""
        self.inner.abandon()


def find_pool(pool: Any, kind: type[AnyPool]) -> AnyPool:
    """Return the pool itself or the first inner pool that is of this kind.

    Raises:
        TypeError: There is none.
    """
    candidate = pool
    while not isinstance(candidate, kind):
        if not isinstance(candidate, ForwardingPool):
            raise TypeError(f"{type(pool).__name__} is not a {kind.__name__}, nor forwards to one")
        candidate = candidate.inner
    return candidate
