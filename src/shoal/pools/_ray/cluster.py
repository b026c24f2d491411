"""Ray itself: joining it, reserving room in it, and leaving it as it was found."""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from shoal.errors import ClusterError, MissingExtraError

__all__ = ["ActorLostError", "Cluster", "Node", "Placement", "Room", "imported_ray", "ready_ones"]

_log = logging.getLogger("shoal")

Placement = Literal["spread", "pack"]
"""Whether actors are spread over the nodes of a cluster, or as many as fit are put on one."""

_SLICE = 0.1
"""Seconds of a wait after which an interrupt is noticed."""

_CPU = "CPU"
_ADDRESS = "RAY_ADDRESS"


def imported_ray() -> Any:
    """The module.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import ray
        import ray.exceptions
        import ray.util
    except ImportError as error:
        raise MissingExtraError('Ray is not installed, run `pip install "shoal[ray]"`') from error
    return ray


class ActorLostError(Exception):
    """An actor has ended; its cause is what Ray says of it."""


class Cluster:
    """The Ray that this process is connected to, which all of its pools share.

    A Ray that was started here for a pool ends with the last of them; one that was there before
    stays. To keep one, call ``ray.init()`` before the first pool is made.

    Args:
        address: As ``ray.init`` takes it: ``"auto"`` for the cluster that this machine is a part
            of, an address, or None for the Ray that this process is connected to already, else
            the one that ``RAY_ADDRESS`` names or that runs here, else a new one on this machine.

    Raises:
        ClusterError: There is no such cluster, or this process is connected to another one.
    """

    # Reentrant: garbage may be collected, and a pool with it, while the lock is held.
    _lock = threading.RLock()
    _members = 0
    _job: str | None = None  # this process's connection to Ray, as they have joined it
    _begun = False  # whether that was made by the first of them
    _is_small = False  # whether it is to a Ray that was started here, and cannot grow

    def __init__(self, address: str | None) -> None:
        self.ray = ray = imported_ray()
        with self._lock:
            if not ray.is_initialized() or self._current_job() != Cluster._job:
                # There was none, or somebody has ended it, or begun another one.
                Cluster._members, Cluster._begun, Cluster._is_small = 0, False, False
            if not ray.is_initialized():
                self._join(address)
            elif address not in (None, "auto", ray.get_runtime_context().gcs_address):
                raise ClusterError(
                    f"address is {address!r}, but this process is connected to the Ray at "
                    f"{ray.get_runtime_context().gcs_address} already"
                )
            Cluster._members += 1
            self._job_joined = Cluster._job = self._current_job()
        self._is_member = True

    def _current_job(self) -> str:
        return str(self.ray.get_runtime_context().get_job_id())

    def _join(self, address: str | None) -> None:
        try:
            self.ray.init(address=address or "auto")
        except ConnectionError as error:
            if address is not None or _ADDRESS in os.environ:
                where = address or os.environ[_ADDRESS]
                raise ClusterError(f"there is no Ray at {where!r}: {error}") from error
            self.ray.init(address="local", include_dashboard=False)
            Cluster._is_small = True
        Cluster._begun = True

    def leave(self, *, at_once: bool = True) -> None:
        """Let go of Ray; a second call does nothing.

        ``at_once`` is whether a Ray that was started for pools ends with the last of them; else it
        is left to the end of the process, or to pools that come.
        """
        with self._lock:
            if not self._is_member:
                return
            is_there, self._is_member = self.is_there, False
            if not is_there:
                return
            Cluster._members -= 1
            if Cluster._members == 0 and Cluster._begun and at_once:
                Cluster._begun = Cluster._is_small = False
                self.ray.shutdown()

    @property
    def is_there(self) -> bool:
        """Whether this process is still connected to it, as it was when it joined."""
        return (
            self._is_member
            and bool(self.ray.is_initialized())
            and self._current_job() == self._job_joined
        )

    def read(self, ref: Any) -> Any:
        """What an actor has answered.

        Raises:
            ActorLostError: The actor, or the answer, is gone.
        """
        errors = self.ray.exceptions
        try:
            return self.ray.get(ref)
        except errors.RayTaskError:
            raise
        except errors.OutOfMemoryError as error:
            raise ActorLostError("Ray has ended it, since memory was short") from error
        except errors.RayError as error:
            raise ActorLostError(" ".join(str(error).split())) from error

    def has_lost(self, node: Node | None) -> bool:
        """Whether this node is known to be gone."""
        dead = [each["NodeID"] for each in self.ray.nodes() if not each["Alive"]]
        return node is not None and node.number in dead

    @property
    def may_grow(self) -> bool:
        """Whether it may get more nodes than it has."""
        return not Cluster._is_small

    def cpus(self) -> float:
        """How many CPUs it has in all."""
        return float(self.ray.cluster_resources().get(_CPU, 0.0))


class Room:
    """CPUs of a cluster that are reserved for actors, all of them or none.

    Args:
        cluster: Where.
        count: For how many actors.
        cpus: Of each.
        placement: On which nodes.
        timeout: Seconds to wait for them to be free.

    Raises:
        ClusterError: They were not free in time.
    """

    def __init__(
        self, cluster: Cluster, count: int, cpus: float, placement: Placement, timeout: float
    ) -> None:
        if placement not in get_args(Placement):
            raise ValueError(f"placement must be one of {get_args(Placement)}, got {placement!r}")
        self._util = cluster.ray.util
        self._group = self._util.placement_group([{_CPU: cpus}] * count, placement.upper())
        try:
            self._wait(cluster, count, cpus, timeout)
        except BaseException:
            self.give_back()
            raise

    def _wait(self, cluster: Cluster, count: int, cpus: float, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        needed = f"{count} actors with {cpus:g} CPUs each"
        is_too_much = count * cpus > cluster.cpus()
        if is_too_much and not cluster.may_grow:
            raise ClusterError(
                f"there is no room for {needed}: this machine has {cluster.cpus():g} CPUs. Ask for "
                "fewer workers, for less with cpus_per_worker, or for another cluster with address"
            )
        if is_too_much:
            _log.warning(
                "%s were asked for, the cluster has %g CPUs: waiting for more for %g seconds",
                needed,
                cluster.cpus(),
                timeout,
            )
        while not self._group.wait(_SLICE):
            if time.monotonic() > deadline:
                free = cluster.ray.available_resources().get(_CPU, 0.0)
                raise ClusterError(
                    f"there was no room for {needed} within {timeout:g} seconds: of "
                    f"{cluster.cpus():g} CPUs {free:g} are free. Ask for fewer workers, for less "
                    "with cpus_per_worker, or for more time with start_timeout"
                )

    def strategy(self, place: int) -> Any:
        """Where an actor is to be put, in the words of Ray."""
        strategies = self._util.scheduling_strategies
        return strategies.PlacementGroupSchedulingStrategy(
            self._group, placement_group_bundle_index=place
        )

    def give_back(self) -> None:
        """Let others have the CPUs; what still runs there is ended."""
        self._util.remove_placement_group(self._group)


class Node(NamedTuple):
    """A machine of a cluster."""

    number: str
    name: str
    address: str

    @classmethod
    def here(cls) -> Node:
        """The one that this process runs on."""
        ray = imported_ray()
        number = ray.get_runtime_context().get_node_id()
        return cls(number, platform.node(), ray.util.get_node_ip_address())

    def __str__(self) -> str:
        return f"{self.name} ({self.address}, node {self.number[:8]})"


def ready_ones(ray: Any, refs: Sequence[Any], timeout: float | None) -> list[Any]:
    """Those of some references that can be read, waiting for one at least; none after a timeout.

    It waits in slices: Ray's own wait notices an interrupt after a second only.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _SLICE if deadline is None else min(_SLICE, deadline - time.monotonic())
        ready, _ = ray.wait(list(refs), num_returns=1, timeout=max(0.0, left), fetch_local=True)
        if ready and len(refs) > 1:
            # All of them: those that come first in the list must not be served first for ever.
            ready, _ = ray.wait(list(refs), num_returns=len(refs), timeout=0, fetch_local=True)
        if ready or left <= 0:
            return list(ready)
