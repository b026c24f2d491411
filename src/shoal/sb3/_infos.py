"""Conversion of a pool's infos to Stable-Baselines3's format, a dict for each environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._types import EPISODE, ColumnInfos, RawInfos, as_events

__all__ = ["TERMINAL_OBSERVATION", "TRUNCATED", "infos_by_slot", "vec_env_infos"]

TRUNCATED = "TimeLimit.truncated"
TERMINAL_OBSERVATION = "terminal_observation"

Info = dict[str, Any]
Flags = npt.NDArray[np.bool_]


def infos_by_slot(raw: RawInfos | None, num_envs: int) -> list[Info]:
    """Return a dict for each slot, empty for slots without infos."""
    infos: list[Info] = [{} for _ in range(num_envs)]
    for slot, info in raw[0] if raw else ():
        infos[slot].update(info)
    return infos


def vec_env_infos(
    raw: RawInfos | ColumnInfos | None,
    terminated: Flags,
    truncated: Flags,
    reset_infos: list[Info],
) -> list[Info]:
    """Return the infos of a step of all slots in which those whose episode ended were reset.

    The infos of these resets are written to ``reset_infos``.
    """
    if raw is None:  # the common case
        return [{TRUNCATED: False} for _ in range(len(terminated))]
    events, episodes = as_events(raw, len(terminated)) or ([], None)
    ended = (terminated | truncated).tolist()
    infos: list[Info] = [{} for _ in ended]
    for slot, info in events:
        if not ended[slot]:
            infos[slot] = info
        elif not infos[slot]:
            final = {TRUNCATED: False, TERMINAL_OBSERVATION: info["final_obs"]}
            infos[slot] = info["final_info"] | final
            reset_infos[slot] = {}
        else:
            reset_infos[slot] = {**reset_infos[slot], **info}
    for slot, (is_truncated, is_terminated) in enumerate(
        zip(truncated.tolist(), terminated.tolist(), strict=True)
    ):
        infos[slot][TRUNCATED] = is_truncated and not is_terminated
    if episodes is not None:
        mask, returns, lengths, seconds = episodes
        for slot in np.flatnonzero(mask).tolist():
            if EPISODE in infos[slot]:
                raise ValueError(
                    f"statistics=True would overwrite the info {EPISODE!r} of the environments: "
                    "use only one of the two (is a Monitor wrapper in use?)"
                )
            infos[slot][EPISODE] = {
                "r": float(returns[slot]),
                "l": int(lengths[slot]),
                "t": float(seconds[slot]),
            }
    return infos
