"""What is left of slots in flight after one of them has failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gymnasium.error import NoAsyncCallError

from shoal.errors import ReceiveTimeoutError
from shoal.pools._base import Batch, Pool

__all__ = ["Remains", "drain_after_failure"]


class Remains(NamedTuple):
    """What has become of slots; those that are named nowhere are still in flight."""

    batches: list[Batch]
    """Of those that were done."""

    failures: list[tuple[list[int], BaseException]]
    """Slots that nothing will come for any more, and what they have failed of."""


def drain_after_failure(pool: Pool, slots: Iterable[int], error: BaseException) -> Remains:
    """After ``recv`` has raised this error: ask for each slot that was in flight."""
    batches: list[Batch] = []
    failures: list[tuple[list[int], BaseException]] = []
    lost: list[int] = []
    for slot in slots:
        try:
            batches.append(pool.recv(timeout=0.0, slots=[slot]))
        except ReceiveTimeoutError:
            continue
        except NoAsyncCallError:
            lost.append(slot)
        except Exception as another:
            failures.append(([slot], another))
    if lost:
        failures.append((lost, error))
    return Remains(batches, failures)
