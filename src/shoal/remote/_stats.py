"""Statistics of connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Stats", "combine_stats"]


@dataclass(frozen=True)
class Stats:
    """Statistics of a connection; times are in seconds, over the newest requests."""

    transport: str
    requests: int
    round_trip: float
    round_trip_p95: float
    server_time: float
    bytes_sent: int
    bytes_received: int
    reconnects: int
    servers: tuple[Stats, ...] = ()
    """The statistics of each server if there are several; the times are those of the slowest."""


def combine_stats(servers: Sequence[Stats]) -> Stats:
    """Combine the statistics of several connections."""
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
