"""Connecting to a Ray cluster, reserving CPUs of it, and disconnecting."""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from shoal.errors import ClusterError, MissingExtraError

__all__ = [
    "ActorLostError",
    "Cluster",
    "Node",
    "Placement",
    "Reservation",
    "import_ray",
    "wait_ready",
]

_log = logging.getLogger("shoal")

Placement = Literal["spread", "pack"]
"""Whether actors are spread over the nodes of a cluster, or packed onto as few as possible."""

_WAIT_SECONDS = 0.1
"""How long one call waits in Ray, which does not react to interrupts at once."""

_CPU = "CPU"
_ADDRESS = "RAY_ADDRESS"  # an environment variable of Ray


def import_ray() -> Any:
    """Return the module ``ray``.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    try:
        import ray
        import ray.exceptions
        import ray.util
    except ImportError as error:
        raise MissingExtraError('Ray is not installed, run `pip install "shoal[ray]"`') from error
    return ray


class ActorLostError(Exception):
    """An actor, or its response, was lost; its cause is the error of Ray."""


class Cluster:
    """A pool's use of the Ray cluster that this process is connected to.

    All pools of a process share one connection. If it was made for a pool, the last pool closes it,
    which also shuts down a cluster that was started for it. A connection that existed before stays
    open: call ``ray.init()`` before making the first pool to keep a cluster running.

    Args:
        address: The address as in ``ray.init``: ``"auto"`` for the cluster that this machine
            belongs to, or the address of a cluster. With None, the first of these that exists: the
            connection of this process, the cluster at ``RAY_ADDRESS``, the cluster that runs on
            this machine; otherwise a new cluster is started on this machine.

    Raises:
        ClusterError: There is no such cluster, or this process is connected to another one.
    """

    # Reentrant: the garbage collector may close a pool while the lock is held.
    _lock = threading.RLock()
    # These describe the connection of the process:
    _users = 0
    _job: str | None = None  # the identifier of the connection that the users share
    _connected_here = False  # whether the first user made the connection
    _is_local = False  # whether the cluster was started here, and so cannot grow

    def __init__(self, address: str | None) -> None:
        self.ray = ray = import_ray()
        with self._lock:
            if not ray.is_initialized() or self._current_job() != Cluster._job:
                # There is no connection, or the user has closed it or made another one.
                Cluster._users, Cluster._connected_here, Cluster._is_local = 0, False, False
            if not ray.is_initialized():
                self._connect(address)
            elif address not in (None, "auto", ray.get_runtime_context().gcs_address):
                raise ClusterError(
                    f"address is {address!r}, but this process is already connected to the Ray "
                    f"cluster at {ray.get_runtime_context().gcs_address}"
                )
            Cluster._users += 1
            self._own_job = Cluster._job = self._current_job()
        self._is_user = True

    def _current_job(self) -> str:
        return str(self.ray.get_runtime_context().get_job_id())

    def _connect(self, address: str | None) -> None:
        try:
            self.ray.init(address=address or "auto")
        except ConnectionError as error:
            if address is not None or _ADDRESS in os.environ:
                location = address or os.environ[_ADDRESS]
                raise ClusterError(f"there is no Ray cluster at {location!r}: {error}") from error
            self.ray.init(address="local", include_dashboard=False)
            Cluster._is_local = True
        Cluster._connected_here = True

    def leave(self, *, disconnect: bool = True) -> None:
        """End this use of the cluster; a second call does nothing.

        Args:
            disconnect: Whether the last user closes a connection that was made for pools.
                Otherwise it stays open for later pools, until the process ends.
        """
        with self._lock:
            if not self._is_user:
                return
            is_running, self._is_user = self.is_running, False
            if not is_running:
                return
            Cluster._users -= 1
            if Cluster._users == 0 and Cluster._connected_here and disconnect:
                Cluster._connected_here = Cluster._is_local = False
                self.ray.shutdown()

    @property
    def is_running(self) -> bool:
        """Whether the connection that the pool was made with is still open."""
        return (
            self._is_user
            and bool(self.ray.is_initialized())
            and self._current_job() == self._own_job
        )

    def read(self, ref: Any) -> Any:
        """Return the response that Ray refers to.

        Raises:
            ActorLostError: The actor, or the response, was lost.
        """
        errors = self.ray.exceptions
        try:
            return self.ray.get(ref)
        except errors.RayTaskError:
            raise
        except errors.OutOfMemoryError as error:
            raise ActorLostError("Ray killed it because the node ran out of memory") from error
        except errors.RayError as error:
            raise ActorLostError(" ".join(str(error).split())) from error

    def is_dead(self, node: Node | None) -> bool:
        """Whether Ray reports this node as dead."""
        dead = [each["NodeID"] for each in self.ray.nodes() if not each["Alive"]]
        return node is not None and node.node_id in dead

    @property
    def can_grow(self) -> bool:
        """Whether nodes may be added to the cluster."""
        return not Cluster._is_local

    def cpus(self) -> float:
        """Return the total number of CPUs of the cluster."""
        return float(self.ray.cluster_resources().get(_CPU, 0.0))


class Reservation:
    """CPUs of a cluster that are reserved for actors, for all of them or for none.

    Args:
        cluster: The cluster.
        count: How many actors need CPUs.
        cpus: How many CPUs each actor needs.
        placement: How actors are distributed over nodes.
        timeout: Seconds to wait until enough CPUs are free.

    Raises:
        ClusterError: Not enough CPUs were free in time.
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
            self.release()
            raise

    def _wait(self, cluster: Cluster, count: int, cpus: float, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        needed = f"{count} actors with {cpus:g} CPUs each"
        exceeds_cluster = count * cpus > cluster.cpus()
        if exceeds_cluster and not cluster.can_grow:
            raise ClusterError(
                f"not enough CPUs for {needed}: this machine has {cluster.cpus():g}. Reduce "
                "workers or cpus_per_worker, or connect to another cluster with address"
            )
        if exceeds_cluster:
            _log.warning(
                "%s were requested, but the cluster has %g CPUs: waiting up to %g seconds for more",
                needed,
                cluster.cpus(),
                timeout,
            )
        while not self._group.wait(_WAIT_SECONDS):
            if time.monotonic() > deadline:
                free = cluster.ray.available_resources().get(_CPU, 0.0)
                raise ClusterError(
                    f"could not reserve {needed} within {timeout:g} seconds: {free:g} of "
                    f"{cluster.cpus():g} CPUs are free. Reduce workers or cpus_per_worker, or "
                    "increase start_timeout"
                )

    def scheduling_strategy(self, index: int) -> Any:
        """Return Ray's scheduling strategy for the actor with this index."""
        strategies = self._util.scheduling_strategies
        return strategies.PlacementGroupSchedulingStrategy(
            self._group, placement_group_bundle_index=index
        )

    def release(self) -> None:
        """Free the CPUs. Ray kills actors that still run on them."""
        self._util.remove_placement_group(self._group)


class Node(NamedTuple):
    """A node of a cluster."""

    node_id: str
    name: str
    address: str

    @classmethod
    def here(cls) -> Node:
        """Return the node that this process runs on."""
        ray = import_ray()
        node_id = ray.get_runtime_context().get_node_id()
        return cls(node_id, platform.node(), ray.util.get_node_ip_address())

    def __str__(self) -> str:
        return f"{self.name} ({self.address}, node {self.node_id[:8]})"


def wait_ready(ray: Any, refs: Sequence[Any], timeout: float | None) -> list[Any]:
    """Wait until at least one of these references is ready, and return all that are.

    Returns an empty list after a timeout. It waits in short intervals, since ``ray.wait`` takes a
    second to react to an interrupt.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        interval = _WAIT_SECONDS
        if deadline is not None:
            interval = min(interval, deadline - time.monotonic())
        ready, _ = ray.wait(list(refs), num_returns=1, timeout=max(0.0, interval), fetch_local=True)
        if ready and len(refs) > 1:
            # Return all that are ready: otherwise the first references could starve the others.
            ready, _ = ray.wait(list(refs), num_returns=len(refs), timeout=0, fetch_local=True)
        if ready or interval <= 0:
            return list(ready)
