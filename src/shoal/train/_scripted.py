"""The scripted players of hockey in the place of an agent."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.hockey import BasicOpponents

__all__ = ["SCRIPTED", "ScriptedPlayer"]

SCRIPTED = ("weak", "strong")
"""Their names."""


class ScriptedPlayer:
    """Plays where an agent would, in as many matches as it is asked.

    Args:
        name: ``weak`` or ``strong``.
        seed: Of what it draws.
    """

    def __init__(self, name: str, seed: int) -> None:
        self._is_weak = name == "weak"
        self._seed = seed
        self._players: BasicOpponents | None = None

    def act_in_environment(
        self,
        states: npt.ArrayLike,
        deterministic: bool = True,  # noqa: ARG002 - as agents have it
    ) -> npt.NDArray[Any]:
        """Actions as the environment takes them."""
        seen = np.asarray(states, np.float32)
        if self._players is None or self._players.num_envs != len(seen):
            self._players = BasicOpponents(len(seen), self._is_weak, self._seed)
        return self._players.act(seen)
