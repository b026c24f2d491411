"""Scripted hockey players with the interface of an agent."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.hockey import BasicOpponents

__all__ = ["SCRIPTED", "ScriptedPlayer"]

SCRIPTED = ("weak", "strong")
"""Names of the scripted players."""


class ScriptedPlayer:
    """A scripted player for any number of parallel matches.

    Args:
        name: ``weak`` or ``strong``.
        seed: The seed of the player's random decisions.
    """

    def __init__(self, name: str, seed: int) -> None:
        self._is_weak = name == "weak"
        self._seed = seed
        self._players: BasicOpponents | None = None

    def act_in_environment(
        self,
        states: npt.ArrayLike,
        deterministic: bool = True,  # noqa: ARG002 - interface of an agent
    ) -> npt.NDArray[Any]:
        """Return actions in the format of the environment's action space."""
        observations = np.asarray(states, np.float32)
        if self._players is None or self._players.num_envs != len(observations):
            self._players = BasicOpponents(len(observations), self._is_weak, self._seed)
        return self._players.act(observations)
