"""The server that a client connects to, with the options of the connection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shoal.remote._address import Address
from shoal.remote._transports.security import TLS

__all__ = ["OnLost", "Target"]

OnLost = Literal["raise", "resume", "truncate"]


@dataclass(frozen=True)
class Target:
    """The server that a client connects to, with the options of the connection."""

    address: Address
    token: str | None
    tls: TLS | str | Path | None
    timeout: float | None
    num_envs: int | None
    on_lost: OnLost
    priority: int
    values: bytes  # packed keyword arguments of the factory
    shares_memory: bool
