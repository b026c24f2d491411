"""``connect``: from an address to a vector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from gymnasium.vector import AutoresetMode

from shoal._options import VectorOptions
from shoal.remote._address import Address, encrypted_if_asked
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

_MOST_ARGUMENTS = 60_000
"""Bytes: they travel with the first message, which a server reads from anybody."""


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
    """Connect to a server, and get a vector of its environments.

    Args:
        url: Where and what: ``tcp://host:port/name``, ``tls://host:port/name``, ``ws://``,
            ``wss://``, ``unix://path#name``, ``inproc://place#name``. A list of them makes one
            vector over several servers, whose slots follow each other in this order.
        num_envs: How many slots; None for as many as the server's factory makes. For a list of
            servers, a list with a number for each, or one number that each of them has.
        token: What the server asks for, if it does.
        tls: For ``tls://`` and ``wss://``, which ``tcp://`` and ``ws://`` then mean as well: the
            file of an authority to trust, or the files (certificate, key, authority) of a client
            that must show who it is, or a context.
        timeout: Seconds to wait for an answer, and to connect, or to come back after a loss; None
            for no limit (but 30 seconds to connect). After a timeout, what is in flight can still
            be received.
        on_lost: What a lost connection means. ``"raise"``: an error. ``"resume"``: the client
            connects again, by itself where nobody waits, and the session goes on where it was,
            nothing is executed twice; if the server has lost the session, an error.
            ``"truncate"``: as ``"resume"``, but if the session is lost a new one begins, whose
            slots come back reset, truncated, and with ``crashed`` in their infos. A reset that was
            under way then is made again, without its seeds.
        priority: For something that there is one of: a client of a higher priority takes over.
        autoreset_mode: Given to the server's factory, which must take it.
        shared_memory: Whether to use shared memory if the server is on this machine.
        info_format: As in :func:`shoal.make`.
        seeding: As in :func:`shoal.make`.
        batch_size: As in :func:`shoal.make`.
        **arguments: Given to the server's factory: plain values, by the names of its parameters.

    An exception of an environment arrives as what it was if it is one of Python's, Gymnasium's or
    Shoal's; another one as a :class:`shoal.errors.RemoteError` of the same name, which is also of
    the nearest of those classes. Infos that cannot travel arrive as :class:`shoal.remote.Unsent`.

    Raises:
        RefusedError: The server does not let us in; it says why.
        ConnectionLostError: There is no server.
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
        raise ValueError(f"got {len(counts)} numbers of slots for {len(urls)} servers")
    addresses = encrypted_if_asked([_with_name(each) for each in urls], tls)
    values = pack_values(arguments, strict=True)
    if len(values) > _MOST_ARGUMENTS:
        raise ValueError(
            f"{len(values)} bytes of arguments for the factory, there may be {_MOST_ARGUMENTS}"
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
    pool = RemotePool(targets[0]) if isinstance(url, str) else _of_several(targets)
    try:
        # Refuses what does not go together, now that the mode is known.
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


def _of_several(targets: Sequence[Target]) -> ServersPool:
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
    address = Address.of(url)
    if not address.name:
        place = "#name" if address.scheme in ("unix", "inproc") else "/name"
        raise ValueError(f"{url!r} does not say what is asked for: {url}{place}")
    return address
