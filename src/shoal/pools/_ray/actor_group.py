"""The actors of a pool: started together, asked, heard and ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal._error_description import renumber_notes
from shoal._spaces import ObservationMode
from shoal.errors import ClusterError, WorkerCrashedError
from shoal.pools._processes.env_registry import registered_specs
from shoal.pools._processes.error_packing import PackedError, unpack_error
from shoal.pools._ray.actor import PoolActor
from shoal.pools._ray.actor_client import OPENING, Host, Terms
from shoal.pools._ray.actor_recipe import Part, pack_part
from shoal.pools._ray.cluster import ActorLostError, Cluster, Placement, Room, ready_ones
from shoal.pools._ray.messages import Introduction
from shoal.pools._slot_partition import SlotPartition

__all__ = ["ActorGroup"]

_LOOK = 0.5
"""Seconds between two looks at whether an actor has started."""

_DIED = "ActorDied"
"""In the name of what Ray raises where an actor's process has ended, at some length."""


class ActorGroup:
    """Actors, by number.

    Args:
        cluster: Where; it is left at the end.
        parts: What each of them hosts.
        partition: Which slots these are.
        cpus: How many CPUs each reserves.
        placement: On which nodes.
        runtime_env: What they need, as Ray describes it.
        observation_mode: How observation spaces of environments must agree.
        start_timeout: Seconds to wait for room.
    """

    def __init__(
        self,
        cluster: Cluster,
        parts: Sequence[Part],
        partition: SlotPartition,
        *,
        cpus: float,
        placement: Placement,
        runtime_env: Mapping[str, Any] | None,
        observation_mode: ObservationMode,
        start_timeout: float,
    ) -> None:
        self._cluster = cluster
        self._num_envs = partition.num_envs
        self._start_timeout = start_timeout
        self._room: Room | None = None
        self.hosts: list[Host] = []
        try:
            letters = [
                pack_part(part, partition.slots_of(place).start) for place, part in enumerate(parts)
            ]
            self._room = room = Room(cluster, len(parts), cpus, placement, start_timeout)
            kind = cluster.ray.remote(PoolActor)
            specs = registered_specs()
            terms = Terms(cluster, kind, room, cpus, runtime_env, specs, observation_mode)
            for place, letter in enumerate(letters):
                self.hosts.append(Host(terms, place, partition.slots_of(place), letter))
        except BaseException:
            self.end()
            raise

    @property
    def is_there(self) -> bool:
        """Whether Ray is still running."""
        return self._cluster.is_there

    def introductions(self) -> list[Introduction]:
        """Wait until all pools are built; raise if one's cannot be."""
        while any(host.is_opening for host in self.hosts):
            for host, number, answer in self.answers(None):
                assert number == OPENING
                if isinstance(answer, ActorLostError):
                    raise self.loss(host, answer)
                host.introduction = self.unpacked(host, answer)
                host.opening_took = host.age
                host.was_answered(OPENING, None)
        return [host.introduction for host in self.hosts if host.introduction is not None]

    def submit(self) -> None:
        """Send what waits, and ask for what has not come, as far as there is room."""
        for host in self.hosts:
            host.submit()

    def answers(self, timeout: float | None) -> Iterator[tuple[Host, int, Any]]:
        """What has come, by the numbers of requests; waits for the first so many seconds.

        An actor that was lost answers with an ActorLostError, until another one is started. Where
        an actor is being started, the wait may end before there is an answer.

        Raises:
            ClusterError: There was no room for a new actor in time.
        """
        opening = [host for host in self.hosts if host.is_opening]
        for host in opening:
            # The first one has its room already, and may build for as long as that takes.
            took = host.opening_took
            if took is not None and host.age > self._start_timeout + took:
                raise ClusterError(
                    f"{host} could not be started within {self._start_timeout:g} seconds: is there "
                    "room for it?"
                )
        if opening:
            timeout = _LOOK if timeout is None else min(timeout, _LOOK)
        awaited = {}
        for host in self.hosts:
            found = host.awaited()
            if found is not None:
                awaited[found[1]] = host, found[0]
        for ref in ready_ones(self._cluster.ray, list(awaited), timeout):
            yield *awaited[ref], self._read(ref)

    def _read(self, ref: Any) -> Any:
        try:
            return self._cluster.read(ref)
        except ActorLostError as error:
            return error

    def ask_each(self, questions: Sequence[tuple[int, str, Any]]) -> list[Any]:
        """Ask actors something at the same time: who, which method, with what.

        Returns their answers, or instead of those ActorLostErrors.
        """
        refs = [
            getattr(self.hosts[place].actor, method).remote(argument)
            for place, method, argument in questions
        ]
        found = []
        for ref in refs:
            ready_ones(self._cluster.ray, [ref], None)
            found.append(self._read(ref))
        return found

    def unpacked(self, host: Host, answer: Any) -> Any:
        """An answer; raises the error that it may be."""
        if isinstance(answer, PackedError):
            raise self.error(host, answer)
        return answer

    def error(self, host: Host, told: PackedError) -> BaseException:
        """An exception that an actor has told of, with the place that it comes from."""
        error = unpack_error(told)
        renumber_notes(error, host.slots.start, self._num_envs)
        error.add_note(f"shoal: in {host}; other messages may count its slots from 0")
        return error

    def loss(self, host: Host, error: ActorLostError) -> WorkerCrashedError:
        """What to tell the caller of an actor that was lost."""
        fate = str(error)
        if self._cluster.has_lost(host.node):
            fate = "its node is gone"
        elif not host.is_opening and _DIED in type(error.__cause__).__name__:
            fate = "its process has ended"
        loss = WorkerCrashedError(f"{host} was lost: {fate}")
        loss.__cause__ = error
        return loss

    def close(self, timeout: float | None) -> list[BaseException]:
        """Have every actor close its environments, if it has any; what they failed of."""
        deadline = None if timeout is None else time.monotonic() + timeout
        failures = []
        there = [host for host in self.hosts if not host.is_opening]
        for host, ref in [(host, host.actor.close.remote()) for host in there]:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if ready_ones(self._cluster.ray, [ref], left):
                answer = self._read(ref)  # who is lost has nothing any more that could be closed
                if isinstance(answer, PackedError):
                    failures.append(self.error(host, answer))
        return failures

    def end(self, *, leaves_at_once: bool = True) -> None:
        """End the actors, and give everything back to the cluster; see :meth:`.Cluster.leave`."""
        try:
            if self.is_there and self._room is not None:
                self._room.give_back()  # which ends what runs there
            for host in self.hosts if self.is_there else ():
                host.kill()
        finally:
            self._cluster.leave(at_once=leaves_at_once)
