"""A vector over one or several clients of the GymAPI."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import index
from typing import Any

from shoal.pools._base import SlotChoice
from shoal.pools._environments import close_environments
from shoal.remote._device_pool import DevicePool
from shoal.remote.bam._client import GenericGymClient
from shoal.remote.bam._joined_devices import JoinedDevices
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._seeding import Seed

__all__ = ["BamVectorEnv", "ClientFactory", "make_bam_vec_env"]

ClientFactory = Callable[..., GenericGymClient]
"""A function that makes a client."""


class BamVectorEnv(VectorEnv):
    """A vector whose slots are stepped by one client with one request.

    A slot whose episode has ended is reset by its next step. ``send`` and ``recv`` step some of the
    slots: each ``send`` is one request. A client processes one request at a time, in the order in
    which they were sent; several clients work concurrently.

    Args:
        env_factory: A function that makes the client; called once. A list makes a vector over
            several clients, each with its own transport, in the order of the list.
        num_envs: Number of slots; for several clients a list with one number per client, or one
            number for all.
        batch_size: Default number of slots that ``recv`` returns, first come, first served.
        kwargs: Keyword arguments of each factory.

    Example:
        >>> from shoal.remote.bam import MockEnv
        >>> with BamVectorEnv(MockEnv, num_envs=3) as envs:
        ...     observations, infos = envs.reset(seed=42)
        >>> observations.shape, envs.action_space
        ((3, 4), MultiDiscrete([2 2 2]))
    """

    _pool: DevicePool | JoinedDevices

    def __init__(
        self,
        env_factory: ClientFactory | Sequence[ClientFactory],
        num_envs: int | Sequence[int] = 4,
        *,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        factories = [env_factory] if callable(env_factory) else list(env_factory)
        counts = _checked_counts(num_envs, len(factories))
        if batch_size is not None and not 1 <= index(batch_size) <= sum(counts):
            raise ValueError(f"batch_size must be in [1, {sum(counts)}], got {batch_size}")
        self.clients = _make_clients(factories, counts, kwargs)
        """The clients in the order of their slots. The vector closes them."""
        try:
            if len(self.clients) == 1:
                pool: DevicePool | JoinedDevices = DevicePool(self.clients[0], counts[0])
            else:
                pool = JoinedDevices(self.clients, counts)
        except BaseException:
            close_environments(self.clients, reporting=False)
            raise
        super().__init__(pool, batch_size=batch_size)

    @property
    def single_env(self) -> GenericGymClient:
        """The client of the vector.

        Raises:
            AttributeError: There are several clients; see ``clients``.
        """
        if len(self.clients) > 1:
            raise AttributeError(
                f"there is no single_env: the vector has {len(self.clients)} clients"
            )
        return self.clients[0]

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Start new episodes in all slots, or in those that ``options["reset_mask"]`` selects.

        See :meth:`.VectorEnv.reset`. After a failure, the slots of this reset are not in flight.
        """
        was_idle = not self._pool.in_flight
        try:
            return super().reset(seed=seed, options=options)
        except Exception:
            if was_idle and not self.closed:
                self._pool.drop()  # the results of other clients
            raise

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Cancel steps and resets that have not started.

        The slots are removed from requests that were not sent yet. Requests in progress continue
        and are received as usual.

        Args:
            slots: The slots to cancel, by default all.

        Returns:
            The cancelled slots. They are not in flight any more and can be sent again.
        """
        return self._pool.cancel(slots)


def make_bam_vec_env(
    env_factory: ClientFactory | Sequence[ClientFactory],
    num_envs: int | Sequence[int] = 4,
    *,
    batch_size: int | None = None,
    **kwargs: Any,
) -> BamVectorEnv:
    """Make a vector over one or several clients.

    The arguments are those of :class:`BamVectorEnv`. If Stable-Baselines3 is imported, this also
    calls :func:`shoal.sb3.patch_algorithms`, so that its algorithms accept the vector.

    Example:
        >>> from shoal.remote.bam import MockEnv
        >>> with make_bam_vec_env([MockEnv, MockEnv], num_envs=[2, 1]) as envs:
        ...     observations, infos = envs.reset(seed=42)
        ...     envs.send([0, 1], slots=[1, 2])
        ...     envs.recv(slots=[2]).slots
        array([2])
    """
    if "stable_baselines3" in sys.modules:
        from shoal.sb3 import patch_algorithms

        patch_algorithms()
    return BamVectorEnv(env_factory, num_envs, batch_size=batch_size, **kwargs)


def _checked_counts(num_envs: int | Sequence[int], clients: int) -> list[int]:
    """Return the number of slots of each client."""
    if isinstance(num_envs, Sequence):
        counts = [index(each) for each in num_envs]
    else:
        counts = [index(num_envs)] * clients
    if not counts or len(counts) != clients:
        raise ValueError(f"num_envs has {len(counts)} numbers for {clients} clients")
    if min(counts) < 1:
        raise ValueError(f"num_envs must be at least 1, got {num_envs}")
    return counts


def _make_clients(
    factories: Sequence[ClientFactory], counts: Sequence[int], kwargs: dict[str, Any]
) -> tuple[GenericGymClient, ...]:
    """Make all clients; if a factory fails, close those that were made."""
    clients: list[GenericGymClient] = []
    try:
        for position, (factory, count) in enumerate(zip(factories, counts, strict=True)):
            with _naming_client(position, len(factories)):
                made: Any = factory(**kwargs)
                if not isinstance(made, GenericGymClient):
                    raise TypeError(f"the factory must make a GenericGymClient, got {made!r}")
                clients.append(made)
                _check_client(made, clients[:position])
                made.num_envs = count
    except BaseException:
        close_environments(clients, reporting=False)
        raise
    return tuple(clients)


def _check_client(client: GenericGymClient, others: Sequence[GenericGymClient]) -> None:
    if not hasattr(client, "single_action_space"):
        raise ValueError(f"{client!r} has no action space: call set_action_space first")
    if any(client.transport is other.transport for other in others):
        # Clients send requests concurrently, but a transport handles one at a time.
        raise ValueError(f"{client!r} shares the transport of another client: each needs its own")


@contextmanager
def _naming_client(position: int, count: int) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if count > 1:
            error.add_note(f"shoal: making client {position} of {count}")
        raise
