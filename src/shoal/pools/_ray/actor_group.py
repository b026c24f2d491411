"""The actors of a pool: starting them, exchanging messages with them, and ending them."""

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
from shoal.pools._ray.actor_client import OPEN_REQUEST, ActorClient, ActorOptions
from shoal.pools._ray.actor_recipe import ActorRecipe, pack_recipe
from shoal.pools._ray.cluster import ActorLostError, Cluster, Placement, Reservation, wait_ready
from shoal.pools._ray.messages import PoolInfo
from shoal.pools._slot_partition import SlotPartition

__all__ = ["ActorGroup"]

_START_CHECK_SECONDS = 0.5
"""How often to check whether an actor takes too long to start."""

_DIED = "ActorDied"
"""Part of the name of Ray's error for an actor whose process has ended; its text is long."""


class ActorGroup:
    """The actors of a pool, by index.

    Args:
        cluster: The cluster; the group leaves it in :meth:`end`.
        recipes: How each actor builds its pool.
        partition: Which slots each actor has.
        cpus: How many CPUs each actor reserves.
        placement: How actors are distributed over nodes.
        runtime_env: The runtime environment of the actors, as Ray describes it.
        observation_mode: How the observation spaces of environments must agree.
        start_timeout: Seconds to wait for free CPUs.
    """

    def __init__(
        self,
        cluster: Cluster,
        recipes: Sequence[ActorRecipe],
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
        self._reservation: Reservation | None = None
        self.clients: list[ActorClient] = []
        self.failure: BaseException | None = None
        """The error after which the actors cannot be used any more."""
        try:
            packed = [
                pack_recipe(recipe, partition.slots_of(index).start)
                for index, recipe in enumerate(recipes)
            ]
            reservation = Reservation(cluster, len(recipes), cpus, placement, start_timeout)
            self._reservation = reservation
            options = ActorOptions(
                cluster,
                cluster.ray.remote(PoolActor),
                reservation,
                cpus,
                runtime_env,
                registered_specs(),
                observation_mode,
            )
            for index, recipe in enumerate(packed):
                slots = partition.slots_of(index)
                self.clients.append(ActorClient(options, index, slots, recipe))
        except BaseException:
            self.end()
            raise

    @property
    def is_running(self) -> bool:
        """Whether this process is still connected to the cluster of the actors."""
        return self._cluster.is_running

    def wait_open(self) -> list[PoolInfo]:
        """Wait until all pools are built, and return what the actors report of them.

        Raises:
            WorkerCrashedError: An actor was lost.
            Exception: The error with which a pool could not be built.
        """
        while any(client.is_opening for client in self.clients):
            for client, number, response in self.responses(None):
                assert number == OPEN_REQUEST
                if isinstance(response, ActorLostError):
                    raise self.loss_error(client, response)
                client.pool_info = self.checked(client, response)
                client.build_seconds = client.age
                client.finish_call(OPEN_REQUEST, None)
        return [client.pool_info for client in self.clients if client.pool_info is not None]

    def submit(self) -> None:
        """Send queued tasks to all actors, and request further results."""
        for client in self.clients:
            client.submit()

    def responses(self, timeout: float | None) -> Iterator[tuple[ActorClient, int, Any]]:
        """Wait for responses, and yield each with its actor and the number of its request.

        The response of a lost actor is an ActorLostError, until the actor is replaced. While an
        actor starts, the wait may end early.

        Args:
            timeout: Seconds to wait for the first response.

        Raises:
            ClusterError: The replacement of an actor could not be started in time.
        """
        opening = [client for client in self.clients if client.is_opening]
        for client in opening:
            # The first actors have their CPUs already, and may build for any time.
            build_seconds = client.build_seconds
            if build_seconds is not None and client.age > self._start_timeout + build_seconds:
                raise ClusterError(
                    f"{client} could not be started within {self._start_timeout:g} seconds: check "
                    "that the cluster has enough free CPUs"
                )
        if opening:
            timeout = (
                _START_CHECK_SECONDS if timeout is None else min(timeout, _START_CHECK_SECONDS)
            )
        pending = {}
        for client in self.clients:
            call = client.oldest_call()
            if call is not None:
                pending[call[1]] = client, call[0]
        for ref in wait_ready(self._cluster.ray, list(pending), timeout):
            yield *pending[ref], self._read(ref)

    def _read(self, ref: Any) -> Any:
        try:
            return self._cluster.read(ref)
        except ActorLostError as error:
            return error

    def call_each(self, calls: Sequence[tuple[int, str, Any]]) -> list[Any]:
        """Call methods of actors concurrently, and return their responses.

        Args:
            calls: The index of the actor, the name of the method, and the argument of each call.

        Returns:
            The responses; an ActorLostError for each actor that was lost.
        """
        refs = [
            getattr(self.clients[index].actor, method).remote(argument)
            for index, method, argument in calls
        ]
        responses = []
        for ref in refs:
            wait_ready(self._cluster.ray, [ref], None)
            responses.append(self._read(ref))
        return responses

    def checked(self, client: ActorClient, response: Any) -> Any:
        """Return a response, or raise the error that it contains."""
        if isinstance(response, PackedError):
            raise self.unpack_error(client, response)
        return response

    def unpack_error(self, client: ActorClient, packed: PackedError) -> BaseException:
        """Return an error of an actor, with notes on where it was raised."""
        error = unpack_error(packed)
        renumber_notes(error, client.slots.start, self._num_envs)
        error.add_note(f"shoal: in {client}; other messages may number its slots from 0")
        return error

    def loss_error(self, client: ActorClient, error: ActorLostError) -> WorkerCrashedError:
        """Return the error to raise for an actor that was lost."""
        reason = str(error)
        if self._cluster.is_dead(client.node):
            reason = "its node is dead"
        elif not client.is_opening and _DIED in type(error.__cause__).__name__:
            reason = "its process has ended"
        loss = WorkerCrashedError(f"{client} was lost: {reason}")
        loss.__cause__ = error
        return loss

    def close(self, timeout: float | None) -> list[BaseException]:
        """Have every actor that is open close its environments, and return their errors."""
        deadline = None if timeout is None else time.monotonic() + timeout
        failures = []
        clients = [client for client in self.clients if not client.is_opening]
        for client, ref in [(client, client.actor.close.remote()) for client in clients]:
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            if wait_ready(self._cluster.ray, [ref], remaining):
                response = self._read(ref)  # a lost actor has nothing left to close
                if isinstance(response, PackedError):
                    failures.append(self.unpack_error(client, response))
        return failures

    def end(self, *, disconnect: bool = True) -> None:
        """End the actors, free their CPUs, and leave the cluster; see :meth:`.Cluster.leave`."""
        try:
            if self.is_running and self._reservation is not None:
                self._reservation.release()
            for client in self.clients if self.is_running else ():
                client.kill()
        finally:
            self._cluster.leave(disconnect=disconnect)
