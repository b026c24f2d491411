"""What a game tells in every step, packed for the way from a worker to the caller.

Infos of Python environments are dicts, which must be pickled and sent; that is not for what every
slot tells in every step. Here it travels as a part of the observation, in the arena, and is made an
info where it arrives. Rewards travel unclipped, so that the statistics of episodes are what players
would call their scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Env
from gymnasium.spaces import Box, Tuple
from gymnasium.vector import AutoresetMode

from shoal.envs.atari.game import AtariGame
from shoal.envs.atari.settings import GameSettings
from shoal.pools import Batch, Pool
from shoal.pools.base import SlotChoice
from shoal.pools.environments import Called, EnvFactory
from shoal.spaces import VectorSpaces
from shoal.types import CRASHED, FINAL_KEYS, ColumnInfos, Event, Finals, Results

__all__ = ["AtariPool", "packed_games"]

_TOLD = ("lives", "frame_number", "episode_frame_number")
_LIFE_LOST = len(_TOLD)

Told = npt.NDArray[np.int32]


def packed_games(games: Sequence[GameSettings], render_mode: str | None = None) -> list[EnvFactory]:
    """Functions that make these games, as an :class:`AtariPool` wants them."""
    return [partial(_PackedGame, settings, render_mode) for settings in games]


class _PackedGame(AtariGame):
    """A game whose observation is the pair of what it shows and what it tells."""

    def __init__(self, settings: GameSettings, render_mode: str | None = None) -> None:
        super().__init__(replace(settings, reward_clipping=False), render_mode)
        self._told = np.zeros(_LIFE_LOST + 1, np.int32)
        limits = np.iinfo(np.int32)
        told = Box(limits.min, limits.max, self._told.shape, np.int32)
        self.observation_space = Tuple((self.observation_space, told))  # type: ignore[assignment]

    def reset(self, **arguments: Any) -> Any:
        pixels, info = super().reset(**arguments)
        return self._packed(pixels, info), {}

    def step(self, action: Any) -> Any:
        pixels, reward, terminated, truncated, info = super().step(action)
        return self._packed(pixels, info), reward, terminated, truncated, {}

    def _packed(self, pixels: Any, info: dict[str, Any]) -> Any:
        self._told[:] = [info[key] for key in _TOLD] + [info.get("life_lost", False)]
        return pixels, self._told


class AtariPool:
    """The contract over a pool of packed games: unpacks what they tell, and clips rewards."""

    def __init__(self, packed: Pool, games: Sequence[GameSettings]) -> None:
        self._packed = packed
        self.games = list(games)
        first = self.games[0]
        self._clips, self._tells_rewards = first.reward_clipping, first.unclipped_reward
        self._reports_losses = first.life_loss_info
        self.num_envs = packed.num_envs
        self.autoreset_mode: AutoresetMode = packed.autoreset_mode
        self.metadata = packed.metadata
        self.render_mode = packed.render_mode
        self.copy = packed.copy
        self.restarts = packed.restarts
        spaces = packed.spaces
        self.spaces = VectorSpaces(
            spaces.single_observation[0],  # type: ignore[index]
            spaces.observation[0],  # type: ignore[index]
            spaces.single_action,
            spaces.action,
        )

    @property
    def envs(self) -> list[Env[Any, Any]] | None:
        """The environments where they are objects of this process, else None."""
        return self._packed.envs

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        return self._packed.in_flight

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets."""
        self._packed.reset(slots, seeds, options)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, and queue their steps."""
        self._packed.send(actions, slots)

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for queued work, and return what is done."""
        batch = self._packed.recv(min_slots, timeout, max_slots=max_slots, slots=slots)
        return Batch(batch.slots, *self._unpacked(*batch[1:]))

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        return self._unpacked(*self._packed.step(actions))

    def begin_step(self, actions: Any) -> None:
        """Begin to step every slot."""
        self._packed.begin_step(actions)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for what ``begin_step`` has begun."""
        return self._unpacked(*self._packed.end_step(timeout))

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots, as a batch, without stepping them."""
        return self._packed.latest(slots)[0]

    def latest_infos(self, slots: SlotChoice = None) -> dict[str, npt.NDArray[np.int32]]:
        """What each of these slots has told last."""
        return _columns(self._packed.latest(slots)[1])

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""
        self._packed.drop()

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach each environment, wherever it is."""
        return self._packed.call(what, *args, slots=slots, **kwargs)

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment, and give back everything."""
        self._packed.close(terminate=terminate, timeout=timeout)

    def abandon(self) -> None:
        """Give back everything, for a vector that is garbage and was not closed."""
        self._packed.abandon()

    def _unpacked(
        self, observations: Any, rewards: Any, terminated: Any, truncated: Any, raw: Any
    ) -> Results:
        pixels, told = observations
        columns: dict[str, npt.NDArray[Any]] = {**_columns(told)}
        if self._tells_rewards:
            columns["unclipped_reward"] = rewards.astype(np.int32)
        if self._clips:
            np.clip(rewards, -1, 1, out=rewards)
        if self._reports_losses:
            lost = told[:, _LIFE_LOST] != 0
            terminated |= lost
            truncated &= ~lost
        events, episodes = raw if raw is not None else ([], None)
        finals = _finals(events)
        if any(CRASHED in info for _, info in events):
            columns[CRASHED] = np.zeros(len(rewards), np.bool_)
            columns[CRASHED][[row for row, info in events if CRASHED in info]] = True
        infos = ColumnInfos(columns, episodes, finals)
        return pixels, rewards, terminated, truncated, infos


def _columns(told: Told) -> dict[str, npt.NDArray[np.int32]]:
    return dict(zip(_TOLD, np.ascontiguousarray(told.T), strict=False))


def _finals(events: list[Event]) -> Finals | None:
    """What was shown and told at the ends of episodes, in the same-step mode."""
    ended = [(row, info["final_obs"]) for row, info in events if info.keys() == FINAL_KEYS]
    ended = [(row, final) for row, final in ended if final is not None]
    if not ended:
        return None
    pixels = np.stack([final[0] for _, final in ended])
    told = np.stack([final[1] for _, final in ended])
    return Finals(np.array([row for row, _ in ended]), pixels, {**_columns(told)})
