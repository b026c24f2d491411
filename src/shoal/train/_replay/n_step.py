"""Rewards of several steps added up, slot by slot, before they are remembered."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["NStep", "Transitions"]

Array = npt.NDArray[Any]


class Transitions(NamedTuple):
    """What was observed and done, and what came of it some steps later; a row for each."""

    observations: Array
    actions: Array
    rewards: Array
    """The discounted sum of the steps between."""
    next_observations: Array
    discounts: Array
    """What the value of the next observation is multiplied by: 0 where the episode terminated."""


class NStep:
    """Gathers the last steps of each slot, and gives out what is complete.

    A transition ends where its episode does; one that was only truncated still has a value after
    its end. With one step it gives out what it is given.

    Args:
        steps: Over how many steps rewards are added up.
        gamma: The discount of a step.

    Example:
        >>> ones, ended = np.ones((1, 1)), np.array([False])
        >>> gather = NStep(2, 0.5)
        >>> len(gather.add(ones, ones, np.array([1.0]), ones, ended, ended).rewards)
        0
        >>> gather.add(ones, ones, np.array([1.0]), ones, ended, ended).rewards
        array([1.5])
    """

    def __init__(self, steps: int, gamma: float) -> None:
        self._steps = steps
        self._gamma = gamma
        self._recent: list[tuple[Array, Array, Array]] = []
        self._lengths: npt.NDArray[np.int64] | None = None

    def add(
        self,
        observations: Array,
        actions: Array,
        rewards: Array,
        next_observations: Array,
        terminated: npt.NDArray[np.bool_],
        truncated: npt.NDArray[np.bool_],
    ) -> Transitions:
        """Take in a step of all slots; the transitions that it completes."""
        if self._steps == 1:
            discounts = self._gamma * ~terminated
            return Transitions(observations, actions, rewards, next_observations, discounts)
        if self._lengths is None:
            self._lengths = np.zeros(len(rewards), np.int64)
        self._recent.append((observations.copy(), actions.copy(), rewards.copy()))
        self._recent = self._recent[-self._steps :]
        self._lengths += 1
        ended = terminated | truncated
        found = []
        # The transition that began `back` steps ago, where it is complete.
        for back in range(len(self._recent), 0, -1):
            complete = (self._lengths >= back) & (ended | (back == self._steps))
            if complete.any():
                found.append(self._begun(back, complete, next_observations, terminated))
        self._lengths[ended] = 0
        self._lengths[self._lengths == self._steps] -= 1  # given out just now
        if not found:
            return Transitions(
                observations[:0], actions[:0], rewards[:0], observations[:0], rewards[:0]
            )
        return Transitions(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _begun(
        self,
        back: int,
        slots: npt.NDArray[np.bool_],
        next_observations: Array,
        terminated: npt.NDArray[np.bool_],
    ) -> Transitions:
        observations, actions, _ = self._recent[-back]
        total = np.zeros(int(slots.sum()))
        for number in range(back):
            total += self._gamma**number * self._recent[number - back][2][slots]
        discounts = self._gamma**back * ~terminated[slots]
        return Transitions(
            observations[slots], actions[slots], total, next_observations[slots], discounts
        )

    def forget(self) -> None:
        """What is not complete will never be: all slots begin anew."""
        self._recent = []
        self._lengths = None

    def state(self) -> dict[str, Any]:
        """What is not complete yet."""
        lengths = None if self._lengths is None else self._lengths.copy()
        return {"recent": list(self._recent), "lengths": lengths}

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        lengths = state["lengths"]
        self._recent = list(state["recent"])
        self._lengths = None if lengths is None else lengths.copy()
