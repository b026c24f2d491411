"""Matches of the hockey kernel as teams of two: no Python for any single match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.vector import AutoresetMode

from shoal._envs.hockey.kernels import SEEN
from shoal._types import ColumnInfos
from shoal.errors import ActionTypeError, InvalidActionError
from shoal.pettingzoo._team_env import Members
from shoal.pettingzoo._teams import LastTeams, TeamBatch
from shoal.pools import Pool
from shoal.pools._base import Batch, SlotChoice

__all__ = ["PLAYERS", "HockeyTeams", "players_of"]

PLAYERS = ("player_1", "player_2")

_REWARDS = "rewards"

Arrays = npt.NDArray[Any]


def players_of(both: Space[Any]) -> Members:
    """The two players, of a kernel with this action space for both."""
    seen, acts = zip(*((_seen(), _half_of(both)) for _ in PLAYERS), strict=True)
    return Members(PLAYERS, seen, acts)


def _seen() -> Space[Any]:
    return spaces.Box(-np.inf, np.inf, (SEEN,), np.float32)


def _half_of(both: Space[Any]) -> Space[Any]:
    if isinstance(both, spaces.MultiDiscrete):
        return spaces.Discrete(int(both.nvec[0]))
    assert both.shape is not None
    return spaces.Box(-1.0, 1.0, (both.shape[0] // 2,), np.float32)


class HockeyTeams:
    """Slots of a kernel that shows both players their match, and takes the actions of both.

    Args:
        pool: A pool of such a kernel.
    """

    joins_by_copying = False
    how_actions_lie = "slots are matches, and an action is that of player_1, then that of player_2"

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.members = players_of(pool.spaces.single_action)

    def read(self, batch: Batch) -> TeamBatch:
        """Take a batch apart. A match begins and ends for both at once."""
        told = batch.infos
        assert isinstance(told, ColumnInfos)
        columns, last = dict(told.columns), None
        rewards = columns.pop(_REWARDS)
        if told.finals is not None:
            rows, seen, final = told.finals
            final = dict(final)
            rewards[rows] = final.pop(_REWARDS)
            last = LastTeams(rows, seen, final)
        moves_on = self.pool.autoreset_mode is AutoresetMode.SAME_STEP
        ended = batch.terminated | batch.truncated
        return TeamBatch(
            batch.slots,
            batch.observations,
            rewards,
            _for_both(batch.terminated),
            _for_both(batch.truncated),
            np.ones_like(rewards, np.bool_) if moves_on else _for_both(~ended),
            np.zeros(0, np.int64),
            columns,
            [],
            last,
        )

    def latest(self, slots: SlotChoice = None) -> Any:
        """What was shown last."""
        return self.pool.latest(slots)

    def of_agent(self, observations: Any, place: int) -> Any:
        """What one player sees."""
        return observations[:, place]

    def in_rows(self, observations: Any) -> Any:
        """What both see, which lies so already."""
        return observations.reshape(-1, SEEN)

    def actions_by_agent(self, actions: Sequence[Any]) -> Any:
        """The actions of both, side by side."""
        space = self.members.action_spaces[0]
        both = [
            _numbers(action, space, f"actions of {player!r}")
            for player, action in zip(PLAYERS, actions, strict=True)
        ]
        if len(both[0]) != len(both[1]):
            raise InvalidActionError(
                f"got actions of {PLAYERS[0]!r} for {len(both[0])} matches, and of "
                f"{PLAYERS[1]!r} for {len(both[1])}"
            )
        return np.stack(both, axis=1).reshape(len(both[0]), -1)

    def actions_in_rows(self, actions: Any, slots: npt.NDArray[np.int64] | None) -> Any:
        """Rows of actions, two of which are those of a match."""
        matches = self.pool.num_envs if slots is None else len(slots)
        rows = _numbers(actions, self.members.action_spaces[0], "actions")
        if len(rows) != 2 * matches:
            raise InvalidActionError(
                f"got {len(rows)} actions, expected {2 * matches}: one for each of 2 players of "
                f"{matches} matches"
            )
        return rows.reshape(matches, -1)


def _for_both(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return np.repeat(flags[:, None], 2, axis=1)


def _numbers(actions: Any, space: Space[Any], what: str) -> Arrays:
    """Actions as an array with a row for each; the kernel checks what is in it."""
    try:
        numbers = np.asarray(actions)
    except ValueError as error:  # rows of different lengths
        raise ActionTypeError(f"{what}: expected numbers of one shape, each in {space}") from error
    assert space.shape is not None
    if numbers.shape[1:] != space.shape or not numbers.ndim:
        raise InvalidActionError(
            f"{what}: got shape {numbers.shape}, expected one row in {space} for each"
        )
    return numbers
