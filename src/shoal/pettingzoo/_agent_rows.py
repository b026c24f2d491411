"""From a batch for each agent to rows of all agents, and back, for agents with equal spaces."""

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
    """Rows of environments times agents: row ``k`` is agent ``k % agents`` of its environment.

    Args:
        members: The agents.
        num_envs: How many environments there are.

    Raises:
        SpaceMismatchError: The agents' spaces are not equal.
    """

    def __init__(self, members: Members, num_envs: int) -> None:
        check_alike(members)
        self._count = count = len(members.agents)
        self._shown = Layout.of(members.observation_spaces[0])
        space = members.action_spaces[0]
        rows = num_envs * count
        self._actions = Layout.of(space, ordered_like=batch_space(space, rows))
        columns = VectorColumns(self._shown, self._actions, rows, 0)
        self._intake = _native.ActionIntake(
            self._actions.tree, columns.actions(), columns.state(), _native.Autoreset.DISABLED
        )

    def joined(self, batches: Sequence[Any]) -> Any:
        """The batches of all agents as one batch of rows."""
        layout = self._shown
        leaves = [batch_leaves(layout, batch) for batch in batches]
        arrays = [
            np.stack(parts, axis=1).reshape(-1, *parts[0].shape[1:])
            for parts in zip(*(found for found, _ in leaves), strict=True)
        ]
        objects = [
            [item for items in zip(*lists, strict=True) for item in items]
            for lists in zip(*(found for _, found in leaves), strict=True)
        ]
        return batch_of_leaves(layout, arrays, objects)

    def taken_apart(
        self, actions: Any, slots: npt.NDArray[np.int64] | None = None
    ) -> tuple[Any, ...]:
        """Actions of all rows, or of those of these environments, as a batch for each agent."""
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
    """Refuse agents whose spaces differ, and say which they are."""
    for kind, found in (
        ("observation", members.observation_spaces),
        ("action", members.action_spaces),
    ):
        differing = [
            f"{agent!r} has {_named(space)}"
            for agent, space in zip(members.agents, found, strict=True)
            if space != found[0]
        ]
        if differing:
            raise SpaceMismatchError(
                f"one batch of all agents needs equal {kind} spaces: {members.agents[0]!r} has "
                f"{_named(found[0])}, but {', '.join(differing)}. With shape='dict' each agent has "
                "batches of its own"
            )


def _named(space: Space[Any]) -> str:
    return " ".join(str(space).split())
