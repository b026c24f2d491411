"""Gradient steps by themselves: Shoal's agents and those of Stable-Baselines3, side by side.

Both learn from the same transitions, with the same batch size, layers, learning rate and threads,
and in the same process. ``learn`` and ``train`` make as many updates in a call, so that what
either does once for a call counts as little as it can.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from benchmarks.learning.configs import HIDDEN
from benchmarks.learning.exercise import Exercise
from benchmarks.learning.transitions import CHOICES, NUMBERS, OBSERVATIONS, make_transitions
from shoal._bench.contenders.base import SEED
from shoal.train import AgentSpaces, make_agent
from shoal.train._agents import Step

__all__ = ["AS_DQN", "BATCH", "ShoalUpdates", "StableBaselinesUpdates"]

BATCH = 256
_RATE = 3e-4
_ROWS = 100_000
"""How many transitions are remembered."""
_AT_ONCE = 25
_WARM_UP = 25
"""Updates before any is measured: what is recorded on a GPU has been recorded after these."""

AS_DQN = {"double": False, "dueling": False, "target_update_freq": 10_000, "tau": 1.0}
"""With these settings DDDQN computes what DQN of Stable-Baselines3 does, and nothing else."""


class ShoalUpdates(Exercise):
    """Updates of an agent.

    Args:
        kind: ``SAC`` or ``DDDQN``.
        device: Where it computes.
        hyperparameters: Settings besides those that are the same for all.
    """

    def __init__(self, kind: str, device: str, **hyperparameters: Any) -> None:
        super().__init__(device)
        action_space = _action_space(kind)
        found = make_transitions(action_space, _ROWS)
        same = {
            "hidden_dim": HIDDEN,
            "batch_size": BATCH,
            "buffer_size": _ROWS,
            "learning_rate": _RATE,
        }
        self.agent = make_agent(
            kind,
            AgentSpaces(OBSERVATIONS.shape[0], action_space),
            same | hyperparameters,
            num_slots=_ROWS,
            device=device,
            seed=SEED,
        )
        never = np.zeros(_ROWS, bool)
        self.agent.remember(Step(*found, truncated=never))
        self.agent.learn(_WARM_UP)

    def once(self) -> int:
        """Make some updates."""
        return self.agent.learn(_AT_ONCE)


class StableBaselinesUpdates(Exercise):
    """Updates of an algorithm of Stable-Baselines3.

    Args:
        kind: ``SAC`` or ``DQN``.
        device: Where it computes.

    Raises:
        ImportError: Stable-Baselines3 is not there.
    """

    def __init__(self, kind: str, device: str) -> None:
        super().__init__(device)
        import stable_baselines3
        from stable_baselines3.common.logger import configure

        action_space = _action_space(kind)
        self.model = getattr(stable_baselines3, kind)(
            "MlpPolicy",
            _Nowhere(action_space),
            policy_kwargs={"net_arch": HIDDEN},
            batch_size=BATCH,
            buffer_size=_ROWS,
            learning_rate=_RATE,
            device=device,
        )
        self.model.set_logger(configure(None, []))
        found, memory = make_transitions(action_space, _ROWS), self.model.replay_buffer
        memory.observations[:, 0] = found.observations
        memory.next_observations[:, 0] = found.next_observations
        memory.actions[:, 0] = found.actions.reshape(_ROWS, -1)
        memory.rewards[:, 0] = found.rewards
        memory.dones[:, 0] = found.terminated
        memory.full = True
        self.model.train(_WARM_UP, BATCH)

    def once(self) -> int:
        """Make some updates."""
        self.model.train(_AT_ONCE, BATCH)
        return _AT_ONCE


class _Nowhere(gymnasium.Env[npt.NDArray[np.float32], Any]):
    """An environment of which only the spaces are wanted."""

    observation_space = OBSERVATIONS

    def __init__(self, action_space: spaces.Space[Any]) -> None:
        self.action_space = action_space


def _action_space(kind: str) -> spaces.Discrete | spaces.Box:
    return NUMBERS if kind == "SAC" else CHOICES
