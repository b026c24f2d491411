"""What a server hosts: factories, what they make, and who may have it."""

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
    """Something to host, and the rules for it.

    Args:
        factory: Makes a Shoal vector or pool, a Gymnasium ``VectorEnv``, or a
            :class:`~shoal.remote._device.Device`. It is called for each session, with ``num_envs``
            and what else the client asks for, as far as it has parameters of these names.
        exclusive: Whether there is one of it, such as a robot cell: one client at a time has it.
        lease: Seconds after which the owner of something exclusive has lost it if nothing was heard
            of it; a client lets itself be heard by itself.
        safe_state: Called when a session was lost without having been closed: stop the arms. It is
            called by the session's thread, while a device's call may still be under way in another.
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


def as_hosted(what: Any) -> Hosted:
    """What a user wants to be hosted: a factory, a :class:`Hosted`, or an environment's id."""
    if isinstance(what, Hosted):
        return what
    if isinstance(what, str):
        spec = gymnasium.spec(what)  # raises now if there is none

        def registered(num_envs: int = 1, autoreset_mode: str | None = None) -> VectorEnv:
            return make(spec, num_envs, autoreset_mode=autoreset_mode)

        return Hosted(registered)
    return Hosted(what)


def open_pool(hosted: Hosted, num_envs: int | None, arguments: dict[str, Any]) -> Pool:
    """Make a pool for a session.

    Args:
        hosted: What was asked for.
        num_envs: How many slots were asked for; None for as many as the factory makes.
        arguments: What else the client has asked for, by the names of the factory's parameters.

    Raises:
        TypeError: The factory has no such parameters, or makes something else.
        ValueError: There are not as many slots as were asked for.
    """
    if "num_envs" in arguments:
        raise TypeError("num_envs is no argument of the factory's own: connect(..., num_envs=...)")
    parameters = inspect.signature(hosted.factory).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    known = {name for name, each in parameters.items() if each.kind is not each.VAR_KEYWORD}
    unknown = [name for name in arguments if name not in known and not takes_all]
    if unknown:
        raise TypeError(f"the factory takes no {', '.join(unknown)}; it takes {sorted(known)}")
    given = dict(arguments)
    if num_envs is not None and ("num_envs" in known or takes_all):
        given["num_envs"] = num_envs
    made = hosted.factory(**given)
    try:
        pool = _as_pool(made, num_envs)
        if num_envs is not None and pool.num_envs != num_envs:
            raise ValueError(f"{num_envs} slots were asked for, there are {pool.num_envs}")
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
        f"the factory made a {type(made).__name__}, expected a vector, a pool, or a device that "
        "answers for all slots (for single environments: shoal.make(factory, num_envs))"
    )


def _pool_of(vector: VectorEnv) -> Pool:
    pool = vector.pool
    vector.closed = True  # from now on the session closes the pool
    return pool
