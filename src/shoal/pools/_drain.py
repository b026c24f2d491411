"""Receiving the other slots in flight after one of them has failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gymnasium.error import NoAsyncCallError

from shoal.errors import ReceiveTimeoutError
from shoal.pools._base import Batch, Pool

__all__ = ["DrainResult", "drain_after_failure"]


class DrainResult(NamedTuple):
    """The slots that are no longer in flight; all others still are."""

    batches: list[Batch]
    """The results of slots that were done."""

    failures: list[tuple[list[int], BaseException]]
    """Slots that have failed, with their error."""


def drain_after_failure(pool: Pool, slots: Iterable[int], error: BaseException) -> DrainResult:
    """Receive each slot that is done, without waiting, after ``recv`` has raised an error.

    Args:
        pool: The pool whose ``recv`` has raised.
        slots: The slots that were in flight.
        error: The error that was raised. Slots that are no longer in flight have failed with it.
    """
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
    return DrainResult(batches, failures)
