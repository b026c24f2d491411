"""Actions as agents choose them, and as environments take them."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

__all__ = ["AgentSpaces", "Choices", "Numbers"]

_MOST_CHOICES = 100_000


class AgentSpaces:
    """What an agent observes and does.

    Args:
        observation_size: How many numbers an observation has.
        action_space: A ``Box`` of one dimension with bounds, or a ``Discrete``.
        observation_scale: What observations are divided by, number by number.
        table: For agents that make choices where actions are numbers: a row for each choice.
        switches: Which numbers of an action only count as being above one half or not.

    Example:
        >>> AgentSpaces(4, spaces.Discrete(2)).choices().count
        2
        >>> stick = spaces.Box(-1.0, 1.0, (2,))
        >>> AgentSpaces(4, stick).choices(fineness=3).table.shape
        (9, 2)
    """

    def __init__(
        self,
        observation_size: int,
        action_space: spaces.Space[Any],
        *,
        observation_scale: npt.ArrayLike | None = None,
        table: npt.ArrayLike | None = None,
        switches: tuple[int, ...] = (),
    ) -> None:
        is_box = isinstance(action_space, spaces.Box) and len(action_space.shape) == 1
        if not is_box and not isinstance(action_space, spaces.Discrete):
            raise ValueError(
                "agents take Discrete actions, or Box actions of one dimension, not "
                f"{action_space}: wrap the environment"
            )
        if isinstance(action_space, spaces.Box):
            if not np.issubdtype(action_space.dtype, np.floating):
                raise ValueError(f"numbers of actions must be floating, got {action_space}")
            if not action_space.is_bounded():
                raise ValueError(f"actions must have bounds, got {action_space}")
            if (action_space.low >= action_space.high).any():
                raise ValueError(f"each number of an action must have a range, got {action_space}")
        self.observation_size = observation_size
        self.action_space = action_space
        scale = np.ones(observation_size) if observation_scale is None else observation_scale
        self.observation_scale = np.broadcast_to(
            np.asarray(scale, np.float32), (observation_size,)
        ).copy()
        self.table = None if table is None else np.asarray(table, np.float32)
        self.switches = switches

    def choices(self, fineness: int | None = None) -> Choices:
        """Actions as choices: those of the space, of the table, or of a grid over all numbers."""
        if isinstance(self.action_space, spaces.Discrete):
            if fineness is not None:
                raise ValueError("action_fineness is for continuous actions, and these are choices")
            return Choices(int(self.action_space.n), start=int(self.action_space.start))
        assert isinstance(self.action_space, spaces.Box)
        if fineness is None:
            if self.table is None:
                raise ValueError(
                    f"actions are {self.action_space}: action_fineness must say into how many "
                    "values each of their numbers is divided"
                )
            return Choices(len(self.table), table=self.table)
        low, high = self.action_space.low, self.action_space.high
        values = [2 if k in self.switches else fineness for k in range(len(low))]
        if prod(values) > _MOST_CHOICES:
            raise ValueError(
                f"action_fineness {fineness} makes {prod(values):,} choices of {len(low)} numbers; "
                f"there may be {_MOST_CHOICES:,}"
            )
        axes = [np.linspace(low[k], high[k], count) for k, count in enumerate(values)]
        grid = np.array(list(product(*axes)), self.action_space.dtype)
        return Choices(len(grid), table=grid)

    def numbers(self) -> Numbers:
        """Actions as numbers."""
        if not isinstance(self.action_space, spaces.Box):
            raise ValueError(f"expected continuous actions, got {self.action_space}")
        return Numbers(self.action_space.low, self.action_space.high)

    @property
    def is_discrete(self) -> bool:
        """Whether environments take choices."""
        return isinstance(self.action_space, spaces.Discrete)

    def state(self) -> dict[str, Any]:
        """All of it as plain data, for files."""
        space: dict[str, Any]
        if isinstance(self.action_space, spaces.Discrete):
            space = {"n": int(self.action_space.n), "start": int(self.action_space.start)}
        else:
            assert isinstance(self.action_space, spaces.Box)
            space = {
                "low": self.action_space.low.tolist(),
                "high": self.action_space.high.tolist(),
                "dtype": np.dtype(self.action_space.dtype).name,
            }
        return {
            "observation_size": self.observation_size,
            "observation_scale": self.observation_scale.tolist(),
            "action_space": space,
            "table": None if self.table is None else self.table.tolist(),
            "switches": list(self.switches),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> AgentSpaces:
        """What :meth:`state` has told."""
        space = state["action_space"]
        action_space: spaces.Space[Any]
        if "n" in space:
            action_space = spaces.Discrete(space["n"], start=space["start"])
        else:
            kind = np.dtype(space["dtype"]).type
            low, high = (np.asarray(space[name], kind) for name in ("low", "high"))
            action_space = spaces.Box(low, high, dtype=kind)
        return cls(
            state["observation_size"],
            action_space,
            observation_scale=state["observation_scale"],
            table=state["table"],
            switches=tuple(state["switches"]),
        )


class Choices:
    """An agent chooses one of so many; the environment takes that number, or a row of the table."""

    def __init__(
        self, count: int, *, table: npt.NDArray[Any] | None = None, start: int = 0
    ) -> None:
        self.count = count
        self.table = table
        self._start = start

    def to_environment(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What the environment takes."""
        if self.table is not None:
            return np.asarray(self.table[actions])
        return np.asarray(actions + self._start) if self._start else actions


class Numbers:
    """An agent gives numbers between the bounds of the space, as the environment takes them."""

    def __init__(self, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> None:
        self.size = len(low)
        self.low = np.asarray(low, np.float32)
        self.high = np.asarray(high, np.float32)
        self._bounds = low, high

    def to_environment(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What the environment takes: of its own type, and within its bounds."""
        low, high = self._bounds
        return np.asarray(np.clip(actions.astype(low.dtype, copy=False), low, high))
