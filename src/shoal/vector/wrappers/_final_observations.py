"""The observations that episodes ended with, in infos of any form.

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

_LISTED = "final_obs"
_COLUMNS = (_LISTED, "final_observation")  # the latter before Gymnasium 1.0


def replace_final_observations(infos: Any, change: Callable[[Finals], Finals]) -> Any:
    """Infos with other final observations; those given stay as they are.

    >>> infos = {"final_obs": np.array([None, 7], object), "_final_obs": np.array([False, True])}
    >>> replaced = replace_final_observations(infos, lambda finals: {1: finals[1] + 1})
    >>> replaced["final_obs"]
    array([None, 8], dtype=object)
    """
    if isinstance(infos, list):
        finals = {slot: info[_LISTED] for slot, info in enumerate(infos) if _LISTED in info}
        if not finals:
            return infos
        listed = list(infos)
        for slot, final in change(finals).items():
            listed[slot] = {**infos[slot], _LISTED: final}
        return listed
    for key in _COLUMNS:
        if key in infos:
            column = copy(infos[key])
            slots = np.flatnonzero(infos[f"_{key}"]).tolist()
            for slot, final in change({slot: column[slot] for slot in slots}).items():
                column[slot] = final
            infos = {**infos, key: column}
    return infos
