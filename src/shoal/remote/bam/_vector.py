"""A vector of environments behind one client of the GymAPI, or behind several."""

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
"""Makes a client, which answers for many slots."""


class BamVectorEnv(VectorEnv):
    """Many slots behind one client, which asks for all of them with one request.

    A slot whose episode has ended is reset by its next step. With ``send`` and ``recv`` slots are
    stepped without the others: each ``send`` is one request. A client has one request under way at
    a time, and begins them in the order in which they were sent; several clients work at once.

    Args:
        env_factory: Makes the client; called once. A list of them makes a vector over several
            clients, each with a transport of its own, whose slots follow each other.
        num_envs: Number of slots; for several clients the number of each, or one for all.
        batch_size: How many slots ``recv`` returns where it is not told: those that are done first.
        kwargs: Given to each factory.

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
            raise ValueError(f"batch_size is {batch_size}, but there are {sum(counts)} slots")
        self.clients = _opened(factories, counts, kwargs)
        """The clients, in the order of their slots. The vector closes them."""
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
        """The one client of the vector.

        Raises:
            AttributeError: There are several; see ``clients``.
        """
        if len(self.clients) > 1:
            raise AttributeError(f"there is no single_env, but {len(self.clients)} clients")
        return self.clients[0]

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Begin new episodes, in all slots or in those that ``options["reset_mask"]`` selects.

        As in :meth:`.VectorEnv.reset`. After a failure nothing is in flight that was not before.
        """
        was_idle = not self._pool.in_flight
        try:
            return super().reset(seed=seed, options=options)
        except Exception:
            if was_idle and not self.closed:
                self._pool.drop()  # what other clients have answered
            raise

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Take back what was sent and has not begun.

        A request that has not been made is made without them. What the other side works on goes
        on, and is received as ever.

        Args:
            slots: Of these slots, or of all.

        Returns:
            The slots of which something was taken back. They are where they were, and can be sent
            again; there is nothing to receive for them.
        """
        return self._pool.cancel(slots)


def make_bam_vec_env(
    env_factory: ClientFactory | Sequence[ClientFactory],
    num_envs: int | Sequence[int] = 4,
    *,
    batch_size: int | None = None,
    **kwargs: Any,
) -> BamVectorEnv:
    """Make a vector of the client that a factory makes, or of those that several make.

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
    """How many slots each client has."""
    if isinstance(num_envs, Sequence):
        counts = [index(each) for each in num_envs]
    else:
        counts = [index(num_envs)] * clients
    if not counts or len(counts) != clients:
        raise ValueError(f"num_envs has {len(counts)} numbers of slots for {clients} clients")
    if min(counts) < 1:
        raise ValueError(f"num_envs must be 1 at least, got {num_envs}")
    return counts


def _opened(
    factories: Sequence[ClientFactory], counts: Sequence[int], kwargs: dict[str, Any]
) -> tuple[GenericGymClient, ...]:
    """A client of each factory; if one fails, those before it are closed."""
    clients: list[GenericGymClient] = []
    try:
        for place, (factory, count) in enumerate(zip(factories, counts, strict=True)):
            with _naming_client(place, len(factories)):
                made: Any = factory(**kwargs)
                if not isinstance(made, GenericGymClient):
                    raise TypeError(f"the factory has made {made!r}, which is no GenericGymClient")
                clients.append(made)
                _check_client(made, clients[:place])
                made.num_envs = count
    except BaseException:
        close_environments(clients, reporting=False)
        raise
    return tuple(clients)


def _check_client(client: GenericGymClient, others: Sequence[GenericGymClient]) -> None:
    if not hasattr(client, "single_action_space"):
        raise ValueError(f"{client!r} has no action space: give it one, or set_action_space")
    if any(client.transport is other.transport for other in others):
        # Clients ask at the same time, and a transport takes one request at a time.
        raise ValueError(f"{client!r} has the transport of another client: each needs its own")


@contextmanager
def _naming_client(place: int, count: int) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if count > 1:
            error.add_note(f"shoal: making client {place} of {count}")
        raise
