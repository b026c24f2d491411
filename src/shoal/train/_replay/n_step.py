"""N-step returns: sum the rewards of several steps before a transition is stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["NStepBuffer", "Transitions"]

Array = npt.NDArray[Any]


class Transitions(NamedTuple):
    """N-step transitions, one row each."""

    observations: Array
    actions: Array
    rewards: Array
    """The discounted sum of the rewards of the steps."""
    next_observations: Array
    discounts: Array
    """The factor of the next observation's value: 0 where the episode terminated."""


class NStepBuffer:
    """Collects the last steps of each slot and returns transitions once they are complete.

    A transition ends after ``steps`` steps or with its episode. The value after a truncated episode
    is bootstrapped; the value after a terminated one is 0. With ``steps=1``, each step is returned
    immediately.

    Args:
        steps: The number of steps over which rewards are summed.
        gamma: The discount factor.

    Example:
        >>> ones, ended = np.ones((1, 1)), np.array([False])
        >>> buffer = NStepBuffer(2, 0.5)
        >>> len(buffer.add(ones, ones, np.array([1.0]), ones, ended, ended).rewards)
        0
        >>> buffer.add(ones, ones, np.array([1.0]), ones, ended, ended).rewards
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
        """Add a step of all slots, and return the transitions that it completes."""
        if self._steps == 1:
            discounts = self._gamma * ~terminated
            return Transitions(observations, actions, rewards, next_observations, discounts)
        if self._lengths is None:
            self._lengths = np.zeros(len(rewards), np.int64)
        self._recent.append((observations.copy(), actions.copy(), rewards.copy()))
        self._recent = self._recent[-self._steps :]
        self._lengths += 1
        ended = terminated | truncated
        parts = []
        # Complete transitions that started `length` steps ago, this step included.
        for length in range(len(self._recent), 0, -1):
            complete = (self._lengths >= length) & (ended | (length == self._steps))
            if complete.any():
                parts.append(self._transitions(length, complete, next_observations, terminated))
        self._lengths[ended] = 0
        # The oldest transition of a full window was returned above.
        self._lengths[self._lengths == self._steps] -= 1
        if not parts:
            return Transitions(
                observations[:0], actions[:0], rewards[:0], observations[:0], rewards[:0]
            )
        return Transitions(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _transitions(
        self,
        length: int,
        slots: npt.NDArray[np.bool_],
        next_observations: Array,
        terminated: npt.NDArray[np.bool_],
    ) -> Transitions:
        observations, actions, _ = self._recent[-length]
        total = np.zeros(int(slots.sum()))
        for number in range(length):
            total += self._gamma**number * self._recent[number - length][2][slots]
        discounts = self._gamma**length * ~terminated[slots]
        return Transitions(
            observations[slots], actions[slots], total, next_observations[slots], discounts
        )

    def clear(self) -> None:
        """Discard incomplete transitions; all slots start new episodes."""
        self._recent = []
        self._lengths = None

    def state(self) -> dict[str, Any]:
        """Return the incomplete transitions."""
        lengths = None if self._lengths is None else self._lengths.copy()
        return {"recent": list(self._recent), "lengths": lengths}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        lengths = state["lengths"]
        self._recent = list(state["recent"])
        self._lengths = None if lengths is None else lengths.copy()
