"""Hosted factories, and the pools that they make."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium

from shoal._make import make
from shoal.pools import Pool
from shoal.remote._device import Device
from shoal.remote._device_pool import DevicePool
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._vector_env_pool import VectorEnvPool

__all__ = ["Hosted", "as_hosted", "open_pool"]

_POOL_METHODS = ("reset", "send", "recv", "step", "latest", "call", "close")


@dataclass(frozen=True)
class Hosted:
    """A factory to host, with options.

    Args:
        factory: Makes a Shoal vector or pool, a Gymnasium ``VectorEnv``, or a
            :class:`~shoal.remote._device.Device`. It is called once per session, with ``num_envs``
            and the keyword arguments of the client, if it has parameters of these names.
        exclusive: Whether only one client at a time may have a session, as for a robot cell.
        lease: Seconds without a message after which the owner of an exclusive vector loses it.
            Clients send heartbeats automatically.
        safe_state: Called when a session is lost without being closed, for example to stop a
            robot. It is called by the session's thread; a device may be in a call in another.
    """

    factory: Callable[..., Any]
    exclusive: bool = False
    lease: float = 10.0
    safe_state: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        if not callable(self.factory):
            raise TypeError(f"expected a function that makes a vector, got {self.factory!r}")
        if not self.lease > 0:
            raise ValueError(f"lease must be a positive number of seconds, got {self.lease!r}")


def as_hosted(target: Any) -> Hosted:
    """Convert a factory, a :class:`Hosted` or the id of an environment."""
    if isinstance(target, Hosted):
        return target
    if isinstance(target, str):
        spec = gymnasium.spec(target)  # raises if the id is not registered

        def registered(num_envs: int = 1, autoreset_mode: str | None = None) -> VectorEnv:
            return make(spec, num_envs, autoreset_mode=autoreset_mode)

        return Hosted(registered)
    return Hosted(target)


def open_pool(hosted: Hosted, num_envs: int | None, arguments: dict[str, Any]) -> Pool:
    """Make a pool for a session.

    Args:
        hosted: The factory.
        num_envs: The requested number of slots; None for the default of the factory.
        arguments: Keyword arguments of the factory.

    Raises:
        TypeError: The factory does not have these parameters, or makes an unsupported object.
        ValueError: The factory makes another number of slots.
    """
    if "num_envs" in arguments:
        raise TypeError(
            "num_envs is not an argument of the factory: use connect(..., num_envs=...)"
        )
    parameters = inspect.signature(hosted.factory).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    known = {name for name, each in parameters.items() if each.kind is not each.VAR_KEYWORD}
    unknown = [name for name in arguments if name not in known and not takes_all]
    if unknown:
        raise TypeError(
            f"the factory has no parameter {', '.join(unknown)}; its parameters are {sorted(known)}"
        )
    kwargs = dict(arguments)
    if num_envs is not None and ("num_envs" in known or takes_all):
        kwargs["num_envs"] = num_envs
    made = hosted.factory(**kwargs)
    try:
        pool = _as_pool(made, num_envs)
        if num_envs is not None and pool.num_envs != num_envs:
            raise ValueError(
                f"{num_envs} slots were requested, but the factory made {pool.num_envs}"
            )
    except BaseException:
        close = getattr(made, "close", None)
        if close is not None:
            close()
        raise
    return pool


def _as_pool(made: Any, num_envs: int | None) -> Pool:
    if isinstance(made, VectorEnv):
        return _pool_of(made)
    if isinstance(made, gymnasium.vector.VectorEnv):
        return VectorEnvPool(made)
    if isinstance(made, Device):
        count: int = getattr(made, "num_envs", 1 if num_envs is None else num_envs)
        if num_envs is not None and num_envs != count and hasattr(made, "set_num_envs"):
            made.set_num_envs(num_envs)
            count = num_envs
        return DevicePool(made, count)
    if all(hasattr(made, name) for name in _POOL_METHODS) and hasattr(made, "spaces"):
        pool: Pool = made
        return pool
    raise TypeError(
        f"the factory made a {type(made).__name__}, expected a vector, a pool or a device "
        "(for single environments, use shoal.make(factory, num_envs))"
    )


def _pool_of(vector: VectorEnv) -> Pool:
    pool = vector.pool
    vector.closed = True  # the session closes the pool
    return pool
