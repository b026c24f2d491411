"""A caller's side of one actor: what was asked of it, and what is awaited.

An interrupt may come between any two lines. So each change of state is one assignment, or can be
done again: requests and tasks are numbered, and what an actor gets twice counts once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shoal.pools._base import WorkerState
from shoal.pools._inline import InlinePool
from shoal.pools._ray.cluster import Cluster, Node, Room
from shoal.pools._ray.messages import REQUESTS, Answer, Introduction, Task
from shoal.pools._restarts import RestartTracker

__all__ = ["OPENING", "Host", "Terms"]

OPENING = 0
"""The number of the request that builds the pool; the others count from there."""


@dataclass(frozen=True)
class Terms:
    """What holds for all actors of a pool."""

    cluster: Cluster
    kind: Any
    """The class of the actors, as Ray has it."""
    room: Room
    cpus: float
    runtime_env: Mapping[str, Any] | None
    specs: Sequence[bytes]
    observation_mode: Any


class _Request(NamedTuple):
    number: int
    tasks: tuple[Task, ...]


class _Call(NamedTuple):
    ref: Any
    slots: int


@dataclass
class _Life:
    """An actor from its start to its loss."""

    actor: Any
    tasks: list[Task]
    """To be sent when there is room for another request."""
    calls: dict[int, _Call] = field(default_factory=dict)
    request: _Request | None = None
    """Which is about to be sent, or was just sent."""
    newest: int = OPENING
    asked: int = 0
    """The newest task."""
    left: int = 0
    """Slots that were in flight in the actor when it last answered."""
    begun: float = field(default_factory=time.monotonic)


class Host:
    """One actor and its slots.

    Args:
        terms: Of the pool.
        place: The number of the actor.
        slots: Those that it hosts, by their numbers in the whole vector.
        part: What builds its pool, pickled.
    """

    def __init__(self, terms: Terms, place: int, slots: range, part: bytes) -> None:
        self._terms = terms
        self.place = place
        self.slots = slots
        self._part = part
        self.restarts = RestartTracker()
        self._actors = 0
        self.introduction: Introduction | None = None
        self.opening_took: float | None = None
        """Seconds until its first actor had built its pool, once it has."""
        self.start()

    def start(self, tasks: Sequence[Task] = ()) -> None:
        """Start an actor, in the place of another one if there was one; it begins with these."""
        terms = self._terms
        self._actors += 1
        actor = terms.kind.options(
            num_cpus=terms.cpus,
            num_gpus=0,
            scheduling_strategy=terms.room.strategy(self.place),
            runtime_env=terms.runtime_env,
            max_restarts=0,
            max_task_retries=0,
        ).remote()
        opening = actor.open.remote(self._part, terms.specs, terms.observation_mode)
        self.introduction = None
        self._life = _Life(actor, list(tasks), calls={OPENING: _Call(opening, 0)})

    @property
    def is_opening(self) -> bool:
        """Whether the actor has not introduced itself yet."""
        return self.introduction is None

    @property
    def age(self) -> float:
        """Seconds since the actor was asked for."""
        return time.monotonic() - self._life.begun

    @property
    def actor(self) -> Any:
        """The actor, for requests that are answered by themselves."""
        return self._life.actor

    @property
    def node(self) -> Node | None:
        """Where the actor is, once it has said so."""
        return None if self.introduction is None else self.introduction.node

    def __str__(self) -> str:
        slots = f"slots {self.slots[0]} to {self.slots[-1]}"
        if self.introduction is None:
            return f"actor {self.place} ({slots})"
        where = f"process {self.introduction.process} on {self.introduction.node}"
        return f"actor {self.place} ({where}, {slots})"

    def worker_state(self) -> WorkerState:
        """Which slots its actor drives, and where."""
        where = "a cluster" if self.introduction is None else str(self.introduction.node)
        return WorkerState(
            f"actor {self.place}", self.slots, place=where, restarts=self._actors - 1
        )

    def ask(self, task: Task) -> None:
        """Have the actor do something, as soon as it has not too much to do."""
        life = self._life
        if task.number > life.asked:
            life.tasks.append(task)
            life.asked = task.number

    @property
    def is_held_up(self) -> bool:
        """Whether there are tasks that wait for an answer to be taken."""
        return bool(self._life.tasks)

    def submit(self) -> None:
        """Send what waits, and ask for what has not come, as far as there is room."""
        life = self._life
        while len(life.calls) < REQUESTS and (life.request or life.tasks or self._wants_more(life)):
            request = life.request
            if request is None:
                request = life.request = _Request(life.newest + 1, tuple(life.tasks))
            sent = request.tasks[-1].number if request.tasks else 0
            life.tasks = [task for task in life.tasks if task.number > sent]
            slots = sum(len(task.slots) for task in request.tasks)
            life.calls[request.number] = _Call(life.actor.work.remote(*request), slots)
            life.newest = request.number
            life.request = None

    def _wants_more(self, life: _Life) -> bool:
        """Whether slots are in flight that nobody would hear of."""
        if not life.left + sum(call.slots for call in life.calls.values()):
            return False
        return not life.calls or (life.left > 0 and self._works_when_asked)

    @property
    def _works_when_asked(self) -> bool:
        return self.introduction is not None and self.introduction.hosts == InlinePool.__name__

    def awaited(self) -> tuple[int, Any] | None:
        """The oldest request without an answer: its number, and Ray's reference to the answer."""
        for number, call in self._life.calls.items():
            return number, call.ref
        return None

    def was_answered(self, number: int, answer: Answer | None) -> None:
        """Note that the answer to a request was dealt with."""
        if answer is not None:
            self._life.left = answer.in_flight
        self._life.calls.pop(number, None)

    def kill(self) -> None:
        """End the actor at once."""
        self._terms.cluster.ray.kill(self._life.actor, no_restart=True)
