"""The interface of a device: one object that steps all slots, such as a robot cell's driver."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gymnasium import Space

__all__ = ["STATUS", "Device", "Feedback", "Status"]

STATUS = "status"
"""The key of the info that holds a slot's status, unless it is ``Status.OK``."""


class Status(StrEnum):
    """The outcome of a slot's action; all but ``OK`` are reported in the info ``status``."""

    OK = "ok"
    NOT_EXECUTED = "not executed"
    """The action was not and will not be executed. The slot keeps its newest observation."""
    TIMEOUT = "timeout"
    """The action missed its deadline and continues; the slot's next response has its result."""
    ERROR = "error"
    """The action of this slot has failed; the info may say why. The episode continues unless the
    feedback ends it: with ``truncated``, the next step resets the slot. An exception, in contrast,
    means that all slots of the call have failed."""
    DUPLICATE = "duplicate observation"
    """The action was executed; its observation is that of another slot."""


class Feedback(NamedTuple):
    """The result of one slot of a device.

    Without a new observation, it contains the slot's newest one.
    """

    observation: Any
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] | None = None
    status: Status = Status.OK


@runtime_checkable
class Device(Protocol):
    """One object that steps all slots.

    A device may also have:

    - ``metadata`` and ``render_mode``;
    - ``num_envs``, the number of slots, and ``set_num_envs(count)`` if the client may choose it;
    - ``render(slots)``, which returns an image per slot;
    - ``cancel(slots)``, called from another thread when a client cancels or a deadline is missed.
      It lets a running call return early with ``Status.NOT_EXECUTED`` for these slots;
    - ``expected_duration(slots, actions)``, the expected seconds of a step, which extend the
      default timeout of the client. It is also called from another thread.

    An exception means that all slots of the call have failed; the failure of one slot is
    ``Status.ERROR``.
    """

    single_observation_space: Space[Any]
    single_action_space: Space[Any]

    def reset_slots(
        self, slots: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> Sequence[Feedback]:
        """Start new episodes; return one feedback per slot, in the order of ``slots``."""

    def step_slots(self, slots: list[int], actions: list[Any]) -> Sequence[Feedback]:
        """Execute one action per slot; return one feedback per slot, in the order of ``slots``."""

    def close(self) -> None:
        """Release the device."""
