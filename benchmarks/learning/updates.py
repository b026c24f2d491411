"""Gradient steps of Shoal's agents and of Stable-Baselines3's, without environments.

Both learn from the same transitions in the same process, with the same batch size, layers, learning
rate and threads. A call of ``learn`` or ``train`` makes many updates, so that the work that either
does once per call hardly counts.
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
"""The number of stored transitions."""
_UPDATES_PER_CALL = 25
_WARM_UP = 25
"""Updates before the measurement, after which all CUDA graphs are recorded."""

AS_DQN = {"double": False, "dueling": False, "target_update_freq": 10_000, "tau": 1.0}
"""The hyperparameters with which DDDQN computes the same as DQN of Stable-Baselines3."""


class ShoalUpdates(Exercise):
    """Updates of an agent.

    Args:
        kind: ``"SAC"`` or ``"DDDQN"``.
        device: The device of networks.
        hyperparameters: Hyperparameters besides those that all contenders share.
    """

    def __init__(self, kind: str, device: str, **hyperparameters: Any) -> None:
        super().__init__(device)
        action_space = _action_space(kind)
        transitions = make_transitions(action_space, _ROWS)
        shared = {
            "hidden_dim": HIDDEN,
            "batch_size": BATCH,
            "buffer_size": _ROWS,
            "learning_rate": _RATE,
        }
        self.agent = make_agent(
            kind,
            AgentSpaces(OBSERVATIONS.shape[0], action_space),
            shared | hyperparameters,
            num_slots=_ROWS,
            device=device,
            seed=SEED,
        )
        never = np.zeros(_ROWS, bool)
        self.agent.remember(Step(*transitions, truncated=never))
        self.agent.learn(_WARM_UP)

    def once(self) -> int:
        """Make some updates and return their number."""
        return self.agent.learn(_UPDATES_PER_CALL)


class StableBaselinesUpdates(Exercise):
    """Updates of an algorithm of Stable-Baselines3.

    Args:
        kind: ``"SAC"`` or ``"DQN"``.
        device: The device of networks.

    Raises:
        ImportError: Stable-Baselines3 is not installed.
    """

    def __init__(self, kind: str, device: str) -> None:
        super().__init__(device)
        import stable_baselines3
        from stable_baselines3.common.logger import configure

        action_space = _action_space(kind)
        self.model = getattr(stable_baselines3, kind)(
            "MlpPolicy",
            _SpacesOnly(action_space),
            policy_kwargs={"net_arch": HIDDEN},
            batch_size=BATCH,
            buffer_size=_ROWS,
            learning_rate=_RATE,
            device=device,
        )
        self.model.set_logger(configure(None, []))
        transitions = make_transitions(action_space, _ROWS)
        memory = self.model.replay_buffer
        memory.observations[:, 0] = transitions.observations
        memory.next_observations[:, 0] = transitions.next_observations
        memory.actions[:, 0] = transitions.actions.reshape(_ROWS, -1)
        memory.rewards[:, 0] = transitions.rewards
        memory.dones[:, 0] = transitions.terminated
        memory.full = True
        self.model.train(_WARM_UP, BATCH)

    def once(self) -> int:
        """Make some updates and return their number."""
        self.model.train(_UPDATES_PER_CALL, BATCH)
        return _UPDATES_PER_CALL


class _SpacesOnly(gymnasium.Env[npt.NDArray[np.float32], Any]):
    """An environment that has spaces and cannot be stepped."""

    observation_space = OBSERVATIONS

    def __init__(self, action_space: spaces.Space[Any]) -> None:
        self.action_space = action_space


def _action_space(kind: str) -> spaces.Discrete | spaces.Box:
    return NUMBERS if kind == "SAC" else CHOICES
