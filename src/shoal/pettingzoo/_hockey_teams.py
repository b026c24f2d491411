"""Matches of the hockey kernel as environments with two agents, without Python per match."""

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
from shoal.pettingzoo._teams import FinalTeamBatch, TeamBatch
from shoal.pools import Pool
from shoal.pools._base import Batch, SlotChoice

__all__ = ["PLAYERS", "HockeyTeams", "player_members"]

PLAYERS = ("player_1", "player_2")

_REWARDS = "rewards"

Arrays = npt.NDArray[Any]


def player_members(both: Space[Any]) -> Members:
    """Return the players and their spaces for a kernel with this action space of both players."""
    observation_spaces, action_spaces = zip(
        *((_observation_space(), _half_of(both)) for _ in PLAYERS), strict=True
    )
    return Members(PLAYERS, observation_spaces, action_spaces)


def _observation_space() -> Space[Any]:
    return spaces.Box(-np.inf, np.inf, (SEEN,), np.float32)


def _half_of(both: Space[Any]) -> Space[Any]:
    if isinstance(both, spaces.MultiDiscrete):
        return spaces.Discrete(int(both.nvec[0]))
    assert both.shape is not None
    return spaces.Box(-1.0, 1.0, (both.shape[0] // 2,), np.float32)


class HockeyTeams:
    """Slots of a kernel whose observations and actions contain those of both players.

    Args:
        pool: A pool of such a kernel.
    """

    joins_by_copying = False
    action_layout = "slot k is match k, and its action is that of player_1 followed by player_2's"

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.members = player_members(pool.spaces.single_action)

    def read(self, batch: Batch) -> TeamBatch:
        """Split a batch by player. A match starts and ends for both players at once."""
        infos = batch.infos
        assert isinstance(infos, ColumnInfos)
        columns, last = dict(infos.columns), None
        rewards = columns.pop(_REWARDS)
        if infos.finals is not None:
            rows, observations, final = infos.finals
            final = dict(final)
            rewards[rows] = final.pop(_REWARDS)
            last = FinalTeamBatch(rows, observations, final)
        resets_in_same_step = self.pool.autoreset_mode is AutoresetMode.SAME_STEP
        ended = batch.terminated | batch.truncated
        return TeamBatch(
            batch.slots,
            batch.observations,
            rewards,
            _for_both(batch.terminated),
            _for_both(batch.truncated),
            np.ones_like(rewards, np.bool_) if resets_in_same_step else _for_both(~ended),
            np.zeros(0, np.int64),
            columns,
            [],
            last,
        )

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observations."""
        return self.pool.latest(slots)

    def of_agent(self, observations: Any, place: int) -> Any:
        """Return the observations of one player."""
        return observations[:, place]

    def in_rows(self, observations: Any) -> Any:
        """Return the observations of both players as rows, without a copy."""
        return observations.reshape(-1, SEEN)

    def actions_by_agent(self, actions: Sequence[Any]) -> Any:
        """Concatenate the actions of both players."""
        space = self.members.action_spaces[0]
        both = [
            _checked_array(action, space, f"actions of {player!r}")
            for player, action in zip(PLAYERS, actions, strict=True)
        ]
        if len(both[0]) != len(both[1]):
            raise InvalidActionError(
                f"got actions of {PLAYERS[0]!r} for {len(both[0])} matches, but actions of "
                f"{PLAYERS[1]!r} for {len(both[1])}"
            )
        return np.stack(both, axis=1).reshape(len(both[0]), -1)

    def actions_in_rows(self, actions: Any, slots: npt.NDArray[np.int64] | None) -> Any:
        """Reshape rows of actions, of which each two belong to one match."""
        matches = self.pool.num_envs if slots is None else len(slots)
        rows = _checked_array(actions, self.members.action_spaces[0], "actions")
        if len(rows) != 2 * matches:
            raise InvalidActionError(
                f"got {len(rows)} actions, expected {2 * matches}: one per player in "
                f"{matches} matches"
            )
        return rows.reshape(matches, -1)


def _for_both(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return np.repeat(flags[:, None], 2, axis=1)


def _checked_array(actions: Any, space: Space[Any], name: str) -> Arrays:
    """Convert actions to an array and check its shape; the kernel checks the values."""
    try:
        array = np.asarray(actions)
    except ValueError as error:  # rows of different lengths
        raise ActionTypeError(
            f"{name}: expected an array of rows in {space}, got rows of different lengths"
        ) from error
    assert space.shape is not None
    if array.shape[1:] != space.shape or not array.ndim:
        raise InvalidActionError(
            f"{name}: got shape {array.shape}, expected an array of rows in {space}"
        )
    return array
