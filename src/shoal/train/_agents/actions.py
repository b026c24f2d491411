"""Convert between the actions of agents and those of environments."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

__all__ = ["AgentSpaces", "ContinuousActions", "DiscreteActions"]

_MAX_CHOICES = 100_000


class AgentSpaces:
    """The observations and actions of an agent.

    Args:
        observation_size: The length of an observation.
        action_space: A ``Discrete`` space, or a one-dimensional ``Box`` with bounds.
        observation_scale: Observations are divided by this scale, element by element.
        table: For agents with discrete actions in a ``Box`` action space: the action of each
            choice, one row each.
        switches: The indices of ``Box`` action elements that are on/off switches (on above one
            half); a grid uses only their lowest and highest value.

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
                raise ValueError(f"Box actions must have a floating dtype, got {action_space}")
            if not action_space.is_bounded():
                raise ValueError(f"Box actions must have finite bounds, got {action_space}")
            if (action_space.low >= action_space.high).any():
                raise ValueError(
                    f"the low bounds of Box actions must be below the high ones, got {action_space}"
                )
        self.observation_size = observation_size
        self.action_space = action_space
        scale = np.ones(observation_size) if observation_scale is None else observation_scale
        self.observation_scale = np.broadcast_to(
            np.asarray(scale, np.float32), (observation_size,)
        ).copy()
        self.table = None if table is None else np.asarray(table, np.float32)
        self.switches = switches

    def choices(self, fineness: int | None = None) -> DiscreteActions:
        """Return discrete actions: those of the space, of the table, or of a grid over the bounds.

        Args:
            fineness: The number of grid values for each element of a ``Box`` action.
        """
        if isinstance(self.action_space, spaces.Discrete):
            if fineness is not None:
                raise ValueError(
                    "action_fineness is for continuous actions, but the actions are "
                    f"{self.action_space}"
                )
            return DiscreteActions(int(self.action_space.n), start=int(self.action_space.start))
        assert isinstance(self.action_space, spaces.Box)
        if fineness is None:
            if self.table is None:
                raise ValueError(
                    f"actions are {self.action_space}: set action_fineness to the number of values "
                    "for each element of an action"
                )
            return DiscreteActions(len(self.table), table=self.table)
        low, high = self.action_space.low, self.action_space.high
        counts = [2 if k in self.switches else fineness for k in range(len(low))]
        if prod(counts) > _MAX_CHOICES:
            raise ValueError(
                f"action_fineness {fineness} makes {prod(counts):,} choices for actions of length "
                f"{len(low)}: the maximum is {_MAX_CHOICES:,}"
            )
        axes = [np.linspace(low[k], high[k], count) for k, count in enumerate(counts)]
        grid = np.array(list(product(*axes)), self.action_space.dtype)
        return DiscreteActions(len(grid), table=grid)

    def numbers(self) -> ContinuousActions:
        """Return continuous actions."""
        if not isinstance(self.action_space, spaces.Box):
            raise ValueError(f"expected continuous actions, got {self.action_space}")
        return ContinuousActions(self.action_space.low, self.action_space.high)

    @property
    def is_discrete(self) -> bool:
        """Whether the action space of the environment is ``Discrete``."""
        return isinstance(self.action_space, spaces.Discrete)

    def state(self) -> dict[str, Any]:
        """Return the spaces as plain data, for files."""
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
        """Create spaces from what :meth:`state` returned."""
        space = state["action_space"]
        action_space: spaces.Space[Any]
        if "n" in space:
            action_space = spaces.Discrete(space["n"], start=space["start"])
        else:
            dtype = np.dtype(space["dtype"]).type
            low, high = (np.asarray(space[name], dtype) for name in ("low", "high"))
            action_space = spaces.Box(low, high, dtype=dtype)
        return cls(
            state["observation_size"],
            action_space,
            observation_scale=state["observation_scale"],
            table=state["table"],
            switches=tuple(state["switches"]),
        )


class DiscreteActions:
    """Actions that an agent chooses by index.

    Args:
        count: The number of choices.
        table: The environment's action for each choice; None if it is the index.
        start: The environment's action for index 0, if there is no table.
    """

    def __init__(
        self, count: int, *, table: npt.NDArray[Any] | None = None, start: int = 0
    ) -> None:
        self.count = count
        self.table = table
        self._start = start

    def to_environment(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert indices to actions of the environment."""
        if self.table is not None:
            return np.asarray(self.table[actions])
        return np.asarray(actions + self._start) if self._start else actions


class ContinuousActions:
    """Actions within the bounds of a ``Box`` space.

    Args:
        low: The lower bounds.
        high: The upper bounds.
    """

    def __init__(self, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> None:
        self.size = len(low)
        self.low = np.asarray(low, np.float32)
        self.high = np.asarray(high, np.float32)
        self._bounds = low, high

    def to_environment(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Cast actions to the dtype of the space and clip them to its bounds."""
        low, high = self._bounds
        return np.asarray(np.clip(actions.astype(low.dtype, copy=False), low, high))
