"""One object that answers for all slots, such as the driver of a robot cell: what it must be."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gymnasium import Space

__all__ = ["STATUS", "Device", "Feedback", "Status"]

STATUS = "status"
"""The info by which a slot tells that something else than an ordinary step has happened."""


class Status(StrEnum):
    """What has become of the action of a slot; each but ``OK`` is told by the info ``status``."""

    OK = "ok"
    NOT_EXECUTED = "not executed"
    """It was not, and will not be. The slot is where it was, with its newest observation."""
    TIMEOUT = "timeout"
    """It was not done by its deadline, and goes on; the next answer tells how it ended."""
    ERROR = "error"
    """Something has failed in this slot alone; the info may say what. The episode goes on, unless
    the feedback ends it: ``truncated`` has the slot reset by its next step. What an exception
    says is said of all slots of a call."""
    DUPLICATE = "duplicate observation"
    """It was executed, and seen together with that of another slot."""


class Feedback(NamedTuple):
    """What a device answers for one slot.

    An observation is always there: without a new one, the newest that the slot has had.
    """

    observation: Any
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] | None = None
    status: Status = Status.OK


@runtime_checkable
class Device(Protocol):
    """One object that answers for all slots.

    It may also have ``metadata`` and ``render_mode``; ``num_envs``, how many slots it has, and
    ``set_num_envs(count)`` where a client may choose; ``render(slots)``, which returns a picture
    for each; ``cancel(slots)``, called from another thread when a client cancels or a deadline is
    missed, which lets a running call return early with ``Status.NOT_EXECUTED`` for them; and
    ``expected_duration(slots, actions)``, the seconds that a step will probably take, which is
    called from another thread as well, and for which a client waits beyond its timeout.

    A call that raises has failed for all of its slots; one slot's failure is ``Status.ERROR``.
    """

    single_observation_space: Space[Any]
    single_action_space: Space[Any]

    def reset_slots(
        self, slots: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> Sequence[Feedback]:
        """Begin new episodes; one feedback for each of these slots."""

    def step_slots(self, slots: list[int], actions: list[Any]) -> Sequence[Feedback]:
        """Execute one action for each of these slots; one feedback for each, in their order."""

    def close(self) -> None:
        """Let go of the device."""
