"""Conversion between one batch per agent and one batch of all agents, for equal spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.vector.utils import batch_space

from shoal import _native
from shoal._memory import VectorColumns
from shoal._spaces import Layout
from shoal._spaces.leaves import batch_leaves, batch_of_leaves
from shoal.errors import ActionTypeError, InvalidActionError, SpaceMismatchError
from shoal.pettingzoo._team_env import Members

__all__ = ["AgentRows", "check_alike"]


class AgentRows:
    """Converter for batches in which row ``k`` is agent ``k % agents`` of its environment.

    Args:
        members: The agents and their spaces.
        num_envs: Number of environments.

    Raises:
        SpaceMismatchError: If the agents' spaces are not equal.
    """

    def __init__(self, members: Members, num_envs: int) -> None:
        check_alike(members)
        self._count = count = len(members.agents)
        self._observations = Layout.of(members.observation_spaces[0])
        space = members.action_spaces[0]
        rows = num_envs * count
        self._actions = Layout.of(space, ordered_like=batch_space(space, rows))
        columns = VectorColumns(self._observations, self._actions, rows, 0)
        self._intake = _native.ActionIntake(
            self._actions.tree, columns.actions(), columns.state(), _native.Autoreset.DISABLED
        )

    def join(self, batches: Sequence[Any]) -> Any:
        """Join one batch per agent into one batch of rows."""
        layout = self._observations
        leaves = [batch_leaves(layout, batch) for batch in batches]
        arrays = [
            np.stack(parts, axis=1).reshape(-1, *parts[0].shape[1:])
            for parts in zip(*(agent_arrays for agent_arrays, _ in leaves), strict=True)
        ]
        objects = [
            [item for items in zip(*lists, strict=True) for item in items]
            for lists in zip(*(agent_objects for _, agent_objects in leaves), strict=True)
        ]
        return batch_of_leaves(layout, arrays, objects)

    def split(self, actions: Any, slots: npt.NDArray[np.int64] | None = None) -> tuple[Any, ...]:
        """Check the actions of all rows, or of these environments, and split them by agent."""
        layout, count = self._actions, self._count
        rows = None
        if slots is not None:
            rows = (slots[:, None] * count + np.arange(count)).ravel()
        try:
            self._intake.accept(actions, rows)
        except (InvalidActionError, ActionTypeError) as error:
            error.add_note(f"shoal: slot k is agent k % {count} of environment k // {count}")
            raise
        arrays, objects = batch_leaves(layout, actions)
        whole = [np.asarray(array) for array in arrays]
        return tuple(
            batch_of_leaves(
                layout,
                [array[place::count] for array in whole],
                [items[place::count] for items in objects],
            )
            for place in range(count)
        )


def check_alike(members: Members) -> None:
    """Raise SpaceMismatchError if the agents' spaces differ."""
    for kind, agent_spaces in (
        ("observation", members.observation_spaces),
        ("action", members.action_spaces),
    ):
        differing = [
            f"{agent!r} has {_on_one_line(space)}"
            for agent, space in zip(members.agents, agent_spaces, strict=True)
            if space != agent_spaces[0]
        ]
        if differing:
            raise SpaceMismatchError(
                f"a batch of all agents needs equal {kind} spaces: {members.agents[0]!r} has "
                f"{_on_one_line(agent_spaces[0])}, but {', '.join(differing)}. Use shape='dict' "
                "for one batch per agent"
            )


def _on_one_line(space: Space[Any]) -> str:
    return " ".join(str(space).split())
