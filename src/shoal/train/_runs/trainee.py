"""An agent in training, its slots and its schedule of updates."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.train._agents import Agent, Step
from shoal.train._agents.base import Array
from shoal.train._config.schema import Training
from shoal.train._runs.pace import Pace
from shoal.train._tasks import Outcome

__all__ = ["Trainee"]


class Trainee:
    """An agent in training and the slots in which it acts.

    Args:
        agent: The agent.
        slots: The slots of the agent.
        training: The training config.
        is_untrained: Whether the agent starts from scratch and acts randomly during the warm-up.
    """

    def __init__(
        self, agent: Agent, slots: slice, training: Training, *, is_untrained: bool = True
    ) -> None:
        self.agent = agent
        self.slots = slots
        # On-policy agents schedule their updates themselves and have no warm-up.
        warmup = 0 if agent.is_on_policy else training.warmup_steps
        per_step = 0.0 if agent.is_on_policy else training.updates_per_step
        self.pace = Pace(warmup, per_step, training.train_freq)
        self.updates = 0
        self._is_untrained = is_untrained
        self._actions: Array = np.zeros(0)
        self._observations: Array = np.zeros(0)

    def act(self, observations: Array) -> Array:
        """Return actions for the agent's slots in the format of the environment's action space.

        Updates that are due are launched here. On a GPU they overlap with the environment step.
        """
        agent = self.agent
        if agent.is_on_policy:
            self._learn(0)
        self._observations = observations[self.slots]
        if self._is_untrained and self.pace.is_warming_up:
            self._actions = agent.random_actions()
        else:
            self._actions = agent.explore(self._observations)
        if not agent.is_on_policy:
            self._learn(self.pace.due())
        return agent.actions.to_environment(self._actions)

    def remember(self, outcome: Outcome) -> None:
        """Pass the outcome of the last actions to the agent."""
        slots = self.slots
        self.agent.remember(
            Step(
                self._observations,
                self._actions,
                outcome.rewards[slots],
                outcome.next_observations[slots],
                outcome.terminated[slots],
                outcome.truncated[slots],
            )
        )
        self.pace.record_steps(self.agent.num_slots)

    def finish_updates(self) -> None:
        """Make all pending updates, including those that would wait for the next group."""
        self._learn(self.pace.due(at_end=True))

    def discard_episodes(self) -> None:
        """Discard unfinished episodes, because new episodes start in the agent's slots."""
        self.agent.cut()
        if self.agent.is_on_policy:
            self.agent.clear_memory()

    def _learn(self, due: int) -> None:
        count = self.agent.learn(due)
        self.pace.record_updates(count)
        self.updates += count

    def state(self, *, with_memory: bool) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "agent": self.agent.state(with_memory=with_memory),
            "pace": self.pace.state(),
            "updates": self.updates,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state returned by :meth:`state`."""
        self.agent.restore(state["agent"])
        self.pace.restore(state["pace"])
        self.updates = state["updates"]
