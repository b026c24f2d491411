"""Replacement of final observations in infos of any format.

Infos are a dict of columns with masks, or a list with a dict for each slot; see
:data:`shoal.vector._infos.InfoFormat`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

__all__ = ["Finals", "replace_final_observations"]

Finals = dict[int, Any]
"""The last observation of each slot whose episode has ended."""

_LIST_KEY = "final_obs"
_COLUMN_KEYS = ("final_obs", "final_observation")  # the latter before Gymnasium 1.0


def replace_final_observations(infos: Any, transform: Callable[[Finals], Finals]) -> Any:
    """Return infos with transformed final observations, without modifying the argument.

    >>> infos = {"final_obs": np.array([None, 7], object), "_final_obs": np.array([False, True])}
    >>> replaced = replace_final_observations(infos, lambda finals: {1: finals[1] + 1})
    >>> replaced["final_obs"]
    array([None, 8], dtype=object)
    """
    if isinstance(infos, list):
        finals = {slot: info[_LIST_KEY] for slot, info in enumerate(infos) if _LIST_KEY in info}
        if not finals:
            return infos
        replaced = list(infos)
        for slot, final in transform(finals).items():
            replaced[slot] = {**infos[slot], _LIST_KEY: final}
        return replaced
    for key in _COLUMN_KEYS:
        if key in infos:
            column = copy(infos[key])
            slots = np.flatnonzero(infos[f"_{key}"]).tolist()
            for slot, final in transform({slot: column[slot] for slot in slots}).items():
                column[slot] = final
            infos = {**infos, key: column}
    return infos
