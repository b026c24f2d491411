"""An agent in training: its slots of the vector, and the pace at which it learns."""

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
    """An agent, and the part of the vector in which it plays.

    Args:
        agent: What learns.
        slots: Its slots.
        training: How it goes on.
        is_beginner: Whether it has learnt nothing yet, and acts at random while it warms up.
    """

    def __init__(
        self, agent: Agent, slots: slice, training: Training, *, is_beginner: bool = True
    ) -> None:
        self.agent = agent
        self.slots = slots
        # An agent that learns from what it has just done has a pace of its own, and no warm-up.
        warmup = 0 if agent.is_on_policy else training.warmup_steps
        per_step = 0.0 if agent.is_on_policy else training.updates_per_step
        self.pace = Pace(warmup, per_step, training.train_freq)
        self.updates = 0
        self._is_beginner = is_beginner
        self._actions: Array = np.zeros(0)
        self._observations: Array = np.zeros(0)

    def act(self, observations: Array) -> Array:
        """Actions of its slots, as the environment takes them.

        On a GPU the updates that are due are begun here and go on while the environments step.
        """
        agent = self.agent
        if agent.is_on_policy:
            self._learn(0)
        self._observations = observations[self.slots]
        if self._is_beginner and self.pace.is_warming_up:
            self._actions = agent.random_actions()
        else:
            self._actions = agent.explore(self._observations)
        if not agent.is_on_policy:
            self._learn(self.pace.due())
        return agent.actions.to_environment(self._actions)

    def remember(self, outcome: Outcome) -> None:
        """What came of the actions."""
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
        self.pace.count(self.agent.num_slots)

    def finish_updates(self) -> None:
        """Make those updates, too, that would wait for the next round."""
        self._learn(self.pace.due(at_end=True))

    def abandon_episodes(self) -> None:
        """What was begun in its slots is not continued: other episodes begin there."""
        self.agent.cut()
        if self.agent.is_on_policy:
            self.agent.clear_memory()

    def _learn(self, due: int) -> None:
        made = self.agent.learn(due)
        self.pace.made(made)
        self.updates += made

    def state(self, *, with_memory: bool) -> dict[str, Any]:
        """All that its rest of the run depends on."""
        return {
            "agent": self.agent.state(with_memory=with_memory),
            "pace": self.pace.state(),
            "updates": self.updates,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        self.agent.restore(state["agent"])
        self.pace.restore(state["pace"])
        self.updates = state["updates"]
