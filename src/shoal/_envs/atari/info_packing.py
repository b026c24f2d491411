"""Transport of per-step infos from worker to caller as part of the observation.

Infos of Python environments are dicts, which workers must pickle. That is too slow for infos that
every slot reports in every step. A packed game therefore appends them to its observation, which is
in shared memory, and :class:`AtariPool` converts them back to infos. Rewards are transported
unclipped, so that episode statistics contain the game's score.
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

from shoal._envs.atari.game import AtariGame, SavedGame
from shoal._envs.atari.settings import GameSettings
from shoal._spaces import VectorSpaces
from shoal._types import CRASHED, FINAL_KEYS, ColumnInfos, Event, Finals, Results
from shoal.errors import InvalidActionError
from shoal.pools import Batch, Pool
from shoal.pools._base import SlotChoice, WorkerState, slot_numbers
from shoal.pools._environments import Called, EnvFactory

__all__ = ["COUNTS", "AtariPool", "packed_games"]

COUNTS = ("lives", "frame_number", "episode_frame_number")
_LIFE_LOST = len(COUNTS)

Told = npt.NDArray[np.int32]


def packed_games(games: Sequence[GameSettings], render_mode: str | None = None) -> list[EnvFactory]:
    """Return factories of games whose pool must be wrapped in an :class:`AtariPool`."""
    return [partial(_PackedGame, settings, render_mode) for settings in games]


class _PackedGame(AtariGame):
    """A game whose observation is the pair of its frame stack and its infos."""

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

    def shown(self) -> Any:
        """Return the latest frame stack and infos."""
        return self._packed(self._window.stack, self._info(0, life_lost=False))

    def _packed(self, pixels: Any, info: dict[str, Any]) -> Any:
        self._told[:] = [info[key] for key in COUNTS] + [info.get("life_lost", False)]
        return pixels, self._told


class AtariPool:
    """The contract over a pool of packed games: unpacks what they tell, and clips rewards."""

    def __init__(self, packed: Pool, games: Sequence[GameSettings]) -> None:
        self._packed = packed
        self.games = list(games)
        first = self.games[0]
        self._clips, self._tells_rewards = first.reward_clipping, first.unclipped_reward
        self._tells_losses = first.life_loss_info
        self._is_continuous = first.continuous
        # By slot: whether it is in flight, and whether its next step is a reset.
        self.flying = np.zeros(packed.num_envs, np.bool_)
        self.ended = np.zeros(packed.num_envs, np.bool_)
        self._restored: dict[int, tuple[Any, Any]] = {}  # what such slots show, until they are sent
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
        self._sent(slots)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, and queue their steps."""
        self._packed.send(self._checked(actions), slots)
        self._sent(slots)

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
        return Batch(batch.slots, *self._unpacked(batch.slots, *batch[1:]))

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        self._restored.clear()
        return self._unpacked(slice(None), *self._packed.step(self._checked(actions)))

    def begin_step(self, actions: Any) -> None:
        """Begin to step every slot."""
        self._packed.begin_step(self._checked(actions))
        self._sent(None)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for what ``begin_step`` has begun."""
        return self._unpacked(slice(None), *self._packed.end_step(timeout))

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots, as a batch, without stepping them."""
        return self._latest(slots)[0]

    def latest_counts(self, slots: SlotChoice = None) -> dict[str, npt.NDArray[np.int32]]:
        """The counts that each of these slots has told last."""
        return _counts(self._latest(slots)[1])

    def _latest(self, slots: SlotChoice) -> tuple[Any, Any]:
        pixels, told = self._packed.latest(slots)
        for row, slot in enumerate(slot_numbers(slots, self.num_envs).tolist()):
            if slot in self._restored:
                pixels[row], told[row] = self._restored[slot]
        return pixels, told

    def save(self, slots: SlotChoice = None) -> list[SavedGame]:
        """All that these slots need to go on from where they are."""
        return self._packed.call(AtariGame.save, slots=slots)

    def restore(self, saved: Sequence[SavedGame], slots: SlotChoice = None) -> None:
        """Let slots go on from where they were saved."""
        for slot, game in zip(slot_numbers(slots, self.num_envs).tolist(), saved, strict=True):
            (self._restored[slot],) = self._packed.call(_restored, game, slots=[slot])

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""
        self._packed.drop()
        self.flying[:] = False

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach each environment, wherever it is."""
        return self._packed.call(what, *args, slots=slots, **kwargs)

    def worker_states(self) -> list[WorkerState]:
        """Who drives the games."""
        return self._packed.worker_states()

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment, and give back everything."""
        self._packed.close(terminate=terminate, timeout=timeout)

    def abandon(self) -> None:
        """Give back everything, for a vector that is garbage and was not closed."""
        self._packed.abandon()

    def _sent(self, slots: SlotChoice) -> None:
        chosen = slot_numbers(slots, self.num_envs)
        self.flying[chosen] = True
        if self._restored:
            for slot in chosen.tolist():
                self._restored.pop(slot, None)

    def _checked(self, actions: Any) -> Any:
        """Refuse continuous actions that are none; the packed pool checks the others."""
        if not self._is_continuous:
            return actions
        batch = np.asarray(actions, np.float32)
        space = self.spaces.single_action
        assert isinstance(space, Box), "it is continuous"
        if batch.ndim == 2 and batch.shape[1:] == space.shape:
            fits = ((batch >= space.low) & (batch <= space.high)).all(axis=1)  # NaN does not
            if not fits.all():
                row = int(np.argmin(fits))
                raise InvalidActionError(f"action {row}, {batch[row]}, is not in {space}")
        return batch

    def _unpacked(
        self,
        slots: Any,
        observations: Any,
        rewards: Any,
        terminated: Any,
        truncated: Any,
        raw: Any,
    ) -> Results:
        pixels, told = observations
        self.flying[slots] = False
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self.ended[slots] = terminated | truncated
        columns = self._columns(told)
        if self._tells_rewards:
            columns["unclipped_reward"] = rewards.astype(np.int32)
        if self._clips:
            rewards = np.clip(rewards, -1, 1)  # the pool's own may be read-only
        events, episodes = raw if raw is not None else ([], None)
        finals = self._finals(events)
        if any(CRASHED in info for _, info in events):
            columns[CRASHED] = np.zeros(len(rewards), np.bool_)
            columns[CRASHED][[row for row, info in events if CRASHED in info]] = True
        infos = ColumnInfos(columns, episodes, finals)
        return pixels, rewards, terminated, truncated, infos

    def _columns(self, told: Told) -> dict[str, npt.NDArray[Any]]:
        columns: dict[str, npt.NDArray[Any]] = {**_counts(told)}
        if self._tells_losses:
            columns["life_lost"] = told[:, _LIFE_LOST] != 0
        return columns

    def _finals(self, events: list[Event]) -> Finals | None:
        """What was shown and told at the ends of episodes, in the same-step mode."""
        ended = [
            (row, info["final_obs"])
            for row, info in events
            if info.keys() == FINAL_KEYS and info["final_obs"] is not None
        ]
        if not ended:
            return None
        pixels = np.stack([final[0] for _, final in ended])
        told = np.stack([final[1] for _, final in ended])
        return Finals(np.array([row for row, _ in ended]), pixels, self._columns(told))


def _restored(game: _PackedGame, saved: SavedGame) -> Any:
    """Restore a game; return its packed observation."""
    game.restore(saved)
    return game.shown()


def _counts(told: Told) -> dict[str, npt.NDArray[np.int32]]:
    return dict(zip(COUNTS, np.ascontiguousarray(told[:, :_LIFE_LOST].T), strict=True))
