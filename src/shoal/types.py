"""Types that cross the border between Python and the native core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "CRASHED",
    "EPISODE",
    "FINAL_KEYS",
    "Episode",
    "Episodes",
    "Event",
    "RawInfos",
    "Results",
    "Slots",
    "Told",
    "Work",
]

Slots = npt.NDArray[np.int64] | None
"""Slot numbers, or None for all of them."""

Work = tuple[npt.NDArray[np.int64], Sequence[int | None] | None, Any]
"""(slots, seeds, options): a step where seeds is None, else a reset."""

Event = tuple[int, dict[str, Any]]
"""An info and the row of the batch that it belongs to."""

Episodes = tuple[
    npt.NDArray[np.bool_], npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]
]
"""Which rows ended an episode, and its return, length and seconds."""

Episode = tuple[int, float, int, float]
"""An episode that ended: its slot, return, length and seconds."""

Told = tuple[list[Event] | None, list[Episode] | None, list[tuple[int, BaseException]] | None]
"""What slots have to tell besides their rows: infos, episodes and errors, each with its slot."""

EPISODE = "episode"
"""The info by which the end of an episode is told, with its return, length and seconds."""

CRASHED = "crashed"
"""The info by which a slot tells that it has lost its environment, and got a new one."""

FINAL_KEYS = {"final_obs", "final_info"}
"""The keys of the event by which a pool tells, in the same-step mode, of an episode's end."""

RawInfos = tuple[list[Event], Episodes | None]
"""Infos as pools give them, before a door has put them into its users' form."""

Results = tuple[
    Any,
    npt.NDArray[np.float64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    RawInfos | None,
]
"""Observations, rewards, terminated, truncated and raw infos, a row for each slot."""
