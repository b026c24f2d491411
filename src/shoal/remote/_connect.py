"""The function ``connect``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from gymnasium.vector import AutoresetMode

from shoal._options import VectorOptions
from shoal.remote._address import Address, apply_tls
from shoal.remote._handshake import check_token
from shoal.remote._pool import RemotePool
from shoal.remote._servers_pool import ServersPool
from shoal.remote._target import OnLost, Target
from shoal.remote._transports.security import TLS
from shoal.remote._value_codec import pack_values
from shoal.remote._vector import RemoteVectorEnv
from shoal.vector._infos import InfoFormat
from shoal.vector._seeding import Seeding

__all__ = ["connect"]

_MAX_ARGUMENTS = 60_000
"""Bytes of packed arguments: they are part of a message that is sent before authentication."""


def connect(
    url: str | Sequence[str],
    num_envs: int | Sequence[int] | None = None,
    *,
    token: str | None = None,
    tls: TLS | str | Path | None = None,
    timeout: float | None = 60.0,
    on_lost: OnLost = "raise",
    priority: int = 0,
    autoreset_mode: AutoresetMode | str | None = None,
    shared_memory: bool = True,
    info_format: InfoFormat = "dict",
    seeding: Seeding = "adjacent",
    batch_size: int | None = None,
    **arguments: Any,
) -> RemoteVectorEnv:
    """Connect to a server, and return a vector of its environments.

    Args:
        url: The address and the name of a hosted vector: ``tcp://host:port/name``,
            ``tls://host:port/name``, ``ws://``, ``wss://``, ``unix://path#name`` or
            ``inproc://server#name``. A list makes one vector over several servers; its slots follow
            the order of the list.
        num_envs: Number of slots; None for the default of the server's factory. For several
            servers, a list with one number per server, or one number for all.
        token: The token that the server requires, if any.
        tls: The certificate file of an authority to trust, the files (certificate, key, authority)
            of a client that must authenticate, or an SSL context. With it, ``tcp://`` means
            ``tls://`` and ``ws://`` means ``wss://``.
        timeout: Seconds to wait for a response, to connect, and to reconnect; None for no limit (30
            seconds to connect). After a timeout, what is in flight can still be received.
        on_lost: How to handle a lost connection. ``"raise"``: raise an error. ``"resume"``:
            reconnect, in the background if necessary, and resume the session; no step is lost or
            executed twice. Raise an error if the server has lost the session. ``"truncate"``: as
            ``"resume"``, but open a new session if the session is lost; its slots return a new
            episode's first observation, truncated, with ``crashed`` in their infos. Resets in
            flight are repeated without seeds.
        priority: For an exclusive vector: a client with a higher priority takes over.
        autoreset_mode: Passed to the server's factory, which must have this parameter.
        shared_memory: Whether to use shared memory if the server is on this machine.
        info_format: As in :func:`shoal.make`.
        seeding: As in :func:`shoal.make`.
        batch_size: As in :func:`shoal.make`.
        **arguments: Keyword arguments of the server's factory; plain values only.

    Exceptions of environments keep their type if it is a built-in one or one of Gymnasium or Shoal.
    Other types become a :class:`shoal.errors.RemoteError` of the same name that also derives from
    the closest known base class. Infos that cannot be sent become :class:`shoal.remote.Unsent`.

    Raises:
        RefusedError: The server refuses the session.
        ConnectionLostError: The server cannot be reached.
    """
    if on_lost not in get_args(OnLost):
        raise ValueError(f"on_lost must be one of {get_args(OnLost)}, got {on_lost!r}")
    check_token(token)
    if not isinstance(priority, int):
        raise TypeError(f"priority must be an integer, got {priority!r}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be a positive number or None, got {timeout!r}")
    if autoreset_mode is not None:
        arguments["autoreset_mode"] = AutoresetMode(autoreset_mode).value
    urls = [url] if isinstance(url, str) else list(url)
    counts = [num_envs] * len(urls) if isinstance(num_envs, int | None) else list(num_envs)
    if not urls or len(counts) != len(urls):
        raise ValueError(f"num_envs has {len(counts)} numbers for {len(urls)} servers")
    addresses = apply_tls([_with_name(each) for each in urls], tls)
    values = pack_values(arguments, strict=True)
    if len(values) > _MAX_ARGUMENTS:
        raise ValueError(
            f"got {len(values)} bytes of arguments for the factory, expected at most "
            f"{_MAX_ARGUMENTS}"
        )
    targets = [
        Target(address, token, tls, timeout, count, on_lost, priority, values, shared_memory)
        for address, count in zip(addresses, counts, strict=True)
    ]
    frontend: dict[str, Any] = {
        "info_format": info_format,
        "seeding": seeding,
        "batch_size": batch_size,
    }
    pool = RemotePool(targets[0]) if isinstance(url, str) else _connect_all(targets)
    try:
        # Check the combination of options now that the autoreset mode is known.
        VectorOptions(
            autoreset_mode=pool.autoreset_mode,
            info_format=info_format,
            seeding=seeding,
            batch_size=batch_size,
        )
    except (TypeError, ValueError):
        pool.close()
        raise
    return RemoteVectorEnv(pool, **frontend)


def _connect_all(targets: Sequence[Target]) -> ServersPool:
    pools: list[RemotePool] = []
    try:
        for target in targets:
            pools.append(RemotePool(target))
        return ServersPool(pools)
    except BaseException:
        for pool in pools:
            pool.close()
        raise


def _with_name(url: str) -> Address:
    address = Address.parse(url)
    if not address.name:
        name = "#name" if address.scheme in ("unix", "inproc") else "/name"
        raise ValueError(f"{url!r} has no name of a hosted vector: expected {url}{name}")
    return address
