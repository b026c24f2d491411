"""What connections have done so far, for users to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Stats", "stats_of_all"]


@dataclass(frozen=True)
class Stats:
    """What a connection has done so far; times are in seconds, over the newest requests."""

    transport: str
    requests: int
    round_trip: float
    round_trip_p95: float
    server_time: float
    bytes_sent: int
    bytes_received: int
    reconnects: int
    servers: tuple[Stats, ...] = ()
    """Of each server, where there are several: then times above are those of the slowest."""


def stats_of_all(servers: Sequence[Stats]) -> Stats:
    """What several connections have done together."""
    return Stats(
        ", ".join(dict.fromkeys(each.transport for each in servers)),
        sum(each.requests for each in servers),
        max(each.round_trip for each in servers),
        max(each.round_trip_p95 for each in servers),
        max(each.server_time for each in servers),
        sum(each.bytes_sent for each in servers),
        sum(each.bytes_received for each in servers),
        sum(each.reconnects for each in servers),
        tuple(servers),
    )
