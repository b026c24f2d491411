"""The caller's side of one actor: its queued tasks and its pending requests.

An interrupt may come between any two lines. Each change of state is therefore one assignment, or
can be repeated: requests and tasks are numbered, and an actor executes each number once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shoal.pools._base import WorkerState
from shoal.pools._inline import InlinePool
from shoal.pools._ray.cluster import Cluster, Node, Reservation
from shoal.pools._ray.messages import MAX_REQUESTS, PoolInfo, Response, Task
from shoal.pools._restarts import RestartTracker

__all__ = ["OPEN_REQUEST", "ActorClient", "ActorOptions"]

OPEN_REQUEST = 0
"""The number of the request that builds the pool; later requests have higher numbers."""


@dataclass(frozen=True)
class ActorOptions:
    """Options that all actors of a pool share."""

    cluster: Cluster
    actor_class: Any
    """The remote class, as Ray returns it."""
    reservation: Reservation
    cpus: float
    runtime_env: Mapping[str, Any] | None
    specs: Sequence[bytes]
    observation_mode: Any


class _Request(NamedTuple):
    number: int
    tasks: tuple[Task, ...]


class _PendingCall(NamedTuple):
    ref: Any
    slots: int


@dataclass
class _ActorState:
    """The state of one actor process, from its start to its loss."""

    actor: Any
    tasks: list[Task]
    """Tasks that are sent with the next request."""
    calls: dict[int, _PendingCall] = field(default_factory=dict)
    """Requests without a response, by number."""
    request: _Request | None = None
    """The request that is being sent, which an interrupt may leave here although it was sent."""
    newest_request: int = OPEN_REQUEST
    newest_task: int = 0
    in_flight: int = 0
    """How many slots were in flight in the actor when it last responded."""
    started: float = field(default_factory=time.monotonic)


class ActorClient:
    """One actor and its slots.

    Args:
        options: The options that all actors of the pool share.
        index: The index of the actor.
        slots: The slots of the actor, numbered within the vector.
        recipe: How the actor builds its pool, pickled.
    """

    def __init__(self, options: ActorOptions, index: int, slots: range, recipe: bytes) -> None:
        self._options = options
        self.index = index
        self.slots = slots
        self._recipe = recipe
        self.restarts = RestartTracker()
        self._starts = 0
        self.pool_info: PoolInfo | None = None
        self.build_seconds: float | None = None
        """How long the first actor took to start and build its pool; None until it has."""
        self.start()

    def start(self, tasks: Sequence[Task] = ()) -> None:
        """Start an actor, or the replacement of a lost one; these tasks are its first."""
        options = self._options
        self._starts += 1
        actor = options.actor_class.options(
            num_cpus=options.cpus,
            num_gpus=0,
            scheduling_strategy=options.reservation.scheduling_strategy(self.index),
            runtime_env=options.runtime_env,
            max_restarts=0,
            max_task_retries=0,
        ).remote()
        opening = actor.open.remote(self._recipe, options.specs, options.observation_mode)
        self.pool_info = None
        calls = {OPEN_REQUEST: _PendingCall(opening, 0)}
        self._state = _ActorState(actor, list(tasks), calls=calls)

    @property
    def is_opening(self) -> bool:
        """Whether the actor has not built its pool yet."""
        return self.pool_info is None

    @property
    def age(self) -> float:
        """Seconds since the actor was started."""
        return time.monotonic() - self._state.started

    @property
    def actor(self) -> Any:
        """The actor, for requests that do not step or reset slots."""
        return self._state.actor

    @property
    def node(self) -> Node | None:
        """The node of the actor; None while it is opening."""
        return None if self.pool_info is None else self.pool_info.node

    def __str__(self) -> str:
        slots = f"slots {self.slots[0]} to {self.slots[-1]}"
        if self.pool_info is None:
            return f"actor {self.index} ({slots})"
        location = f"process {self.pool_info.process} on {self.pool_info.node}"
        return f"actor {self.index} ({location}, {slots})"

    def worker_state(self) -> WorkerState:
        """Return the slots and the node of the actor."""
        location = "a cluster" if self.pool_info is None else str(self.pool_info.node)
        return WorkerState(
            f"actor {self.index}", self.slots, place=location, restarts=self._starts - 1
        )

    def queue(self, task: Task) -> None:
        """Queue a task for :meth:`submit`; queueing it again does nothing."""
        state = self._state
        if task.number > state.newest_task:
            state.tasks.append(task)
            state.newest_task = task.number

    @property
    def has_queued_tasks(self) -> bool:
        """Whether tasks wait for a pending request to be answered."""
        return bool(self._state.tasks)

    def submit(self) -> None:
        """Send queued tasks, and request further results, up to the limit of pending requests."""
        state = self._state
        while len(state.calls) < MAX_REQUESTS and (
            state.request or state.tasks or self._needs_results(state)
        ):
            request = state.request
            if request is None:
                number = state.newest_request + 1
                request = state.request = _Request(number, tuple(state.tasks))
            newest_sent = request.tasks[-1].number if request.tasks else 0
            state.tasks = [task for task in state.tasks if task.number > newest_sent]
            slots = sum(len(task.slots) for task in request.tasks)
            ref = state.actor.work.remote(*request)
            state.calls[request.number] = _PendingCall(ref, slots)
            state.newest_request = request.number
            state.request = None

    def _needs_results(self, state: _ActorState) -> bool:
        """Whether slots are in flight whose results no pending request will return."""
        if not state.in_flight + sum(call.slots for call in state.calls.values()):
            return False
        return not state.calls or (state.in_flight > 0 and self._steps_on_request)

    @property
    def _steps_on_request(self) -> bool:
        return self.pool_info is not None and self.pool_info.pool_type == InlinePool.__name__

    def oldest_call(self) -> tuple[int, Any] | None:
        """Return the oldest pending request: its number, and Ray's reference to the response."""
        for number, call in self._state.calls.items():
            return number, call.ref
        return None

    def finish_call(self, number: int, response: Response | None) -> None:
        """Note that the response to a request was processed."""
        if response is not None:
            self._state.in_flight = response.in_flight
        self._state.calls.pop(number, None)

    def kill(self) -> None:
        """Kill the actor."""
        self._options.cluster.ray.kill(self._state.actor, no_restart=True)
