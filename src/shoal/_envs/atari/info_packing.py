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
from gymnasium.spaces import Box, Tuple
from gymnasium.vector import AutoresetMode

from shoal._envs.atari.game import AtariGame, SavedGame
from shoal._envs.atari.settings import GameSettings
from shoal._spaces import VectorSpaces
from shoal._types import CRASHED, FINAL_KEYS, ColumnInfos, Event, Finals, Results
from shoal.errors import InvalidActionError
from shoal.pools import Batch, Pool
from shoal.pools._base import SlotChoice, slot_numbers
from shoal.pools._environments import EnvFactory
from shoal.pools._forwarding import ForwardingPool

__all__ = ["COUNTS", "AtariPool", "packed_games"]

COUNTS = ("lives", "frame_number", "episode_frame_number")
_LIFE_LOST = len(COUNTS)

Counts = npt.NDArray[np.int32]


def packed_games(games: Sequence[GameSettings], render_mode: str | None = None) -> list[EnvFactory]:
    """Return factories of games whose pool must be wrapped in an :class:`AtariPool`."""
    return [partial(_PackedGame, settings, render_mode) for settings in games]


class _PackedGame(AtariGame):
    """A game whose observation is the pair of its frame stack and its infos."""

    def __init__(self, settings: GameSettings, render_mode: str | None = None) -> None:
        super().__init__(replace(settings, reward_clipping=False), render_mode)
        self._packed_counts = np.zeros(_LIFE_LOST + 1, np.int32)
        limits = np.iinfo(np.int32)
        counts = Box(limits.min, limits.max, self._packed_counts.shape, np.int32)
        self.observation_space = Tuple((self.observation_space, counts))  # type: ignore[assignment]

    def reset(self, **arguments: Any) -> Any:
        pixels, info = super().reset(**arguments)
        return self._packed(pixels, info), {}

    def step(self, action: Any) -> Any:
        pixels, reward, terminated, truncated, info = super().step(action)
        return self._packed(pixels, info), reward, terminated, truncated, {}

    def packed_observation(self) -> Any:
        """Return the latest frame stack and infos."""
        return self._packed(self._window.stack, self._info(0, life_lost=False))

    def _packed(self, pixels: Any, info: dict[str, Any]) -> Any:
        self._packed_counts[:] = [info[key] for key in COUNTS] + [info.get("life_lost", False)]
        return pixels, self._packed_counts


class AtariPool(ForwardingPool[Pool]):
    """A pool around a pool of packed games, which unpacks their infos and clips rewards.

    Args:
        packed: The pool of packed games.
        games: The settings of each slot.
    """

    def __init__(self, packed: Pool, games: Sequence[GameSettings]) -> None:
        super().__init__(packed)
        self.games = list(games)
        first = self.games[0]
        self._clips, self._reports_unclipped_rewards = first.reward_clipping, first.unclipped_reward
        self._reports_life_loss = first.life_loss_info
        self._is_continuous = first.continuous
        # By slot: whether it is in flight, and whether its next step is a reset.
        self.in_flight_mask = np.zeros(packed.num_envs, np.bool_)
        self.ended = np.zeros(packed.num_envs, np.bool_)
        # The observations of slots that were restored and not sent since.
        self._restored: dict[int, tuple[Any, Any]] = {}
        spaces = packed.spaces
        self.spaces = VectorSpaces(
            spaces.single_observation[0],  # type: ignore[index]
            spaces.observation[0],  # type: ignore[index]
            spaces.single_action,
            spaces.action,
        )

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        super().reset(slots, seeds, options)
        self._note_sent(slots)

    def send(self, actions: Any, slots: SlotChoice = None, **options: Any) -> None:
        """Check actions, one for each of these slots, and queue their steps."""
        super().send(self._checked(actions), slots, **options)
        self._note_sent(slots)

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, and return those that are done."""
        batch = super().recv(min_slots, timeout, max_slots=max_slots, slots=slots)
        return Batch(batch.slots, *self._unpacked(batch.slots, *batch[1:]))

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        self._restored.clear()
        return self._unpacked(slice(None), *super().step(self._checked(actions)))

    def begin_step(self, actions: Any, **options: Any) -> None:
        """Check actions for every slot, and begin to step them."""
        super().begin_step(self._checked(actions), **options)
        self._note_sent(None)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` began."""
        return self._unpacked(slice(None), *super().end_step(timeout))

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots, as a batch, without a step."""
        return self._latest(slots)[0]

    def latest_counts(self, slots: SlotChoice = None) -> dict[str, npt.NDArray[np.int32]]:
        """Return the newest counts of each of these slots."""
        return _counts(self._latest(slots)[1])

    def _latest(self, slots: SlotChoice) -> tuple[Any, Any]:
        pixels, counts = self.inner.latest(slots)
        for row, slot in enumerate(slot_numbers(slots, self.num_envs).tolist()):
            if slot in self._restored:
                pixels[row], counts[row] = self._restored[slot]
        return pixels, counts

    def save(self, slots: SlotChoice = None) -> list[SavedGame]:
        """Return a snapshot of each of these slots."""
        return self.call(AtariGame.save, slots=slots)

    def restore(self, saved: Sequence[SavedGame], slots: SlotChoice = None) -> None:
        """Restore slots from snapshots."""
        for slot, game in zip(slot_numbers(slots, self.num_envs).tolist(), saved, strict=True):
            (self._restored[slot],) = self.call(_restored, game, slots=[slot])

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""
        super().drop()
        self.in_flight_mask[:] = False

    def _note_sent(self, slots: SlotChoice) -> None:
        chosen = slot_numbers(slots, self.num_envs)
        self.in_flight_mask[chosen] = True
        if self._restored:
            for slot in chosen.tolist():
                self._restored.pop(slot, None)

    def _checked(self, actions: Any) -> Any:
        """Check the range of continuous actions; the packed pool checks everything else."""
        if not self._is_continuous:
            return actions
        batch = np.asarray(actions, np.float32)
        space = self.spaces.single_action
        assert isinstance(space, Box), "continuous actions are a Box"
        if batch.ndim == 2 and batch.shape[1:] == space.shape:
            fits = ((batch >= space.low) & (batch <= space.high)).all(axis=1)  # False for NaN
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
        pixels, counts = observations
        self.in_flight_mask[slots] = False
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self.ended[slots] = terminated | truncated
        columns = self._columns(counts)
        if self._reports_unclipped_rewards:
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

    def _columns(self, counts: Counts) -> dict[str, npt.NDArray[Any]]:
        columns: dict[str, npt.NDArray[Any]] = {**_counts(counts)}
        if self._reports_life_loss:
            columns["life_lost"] = counts[:, _LIFE_LOST] != 0
        return columns

    def _finals(self, events: list[Event]) -> Finals | None:
        """Return the final observations and counts of episodes, in the same-step mode."""
        ended = [
            (row, info["final_obs"])
            for row, info in events
            if info.keys() == FINAL_KEYS and info["final_obs"] is not None
        ]
        if not ended:
            return None
        pixels = np.stack([final[0] for _, final in ended])
        counts = np.stack([final[1] for _, final in ended])
        return Finals(np.array([row for row, _ in ended]), pixels, self._columns(counts))


def _restored(game: _PackedGame, saved: SavedGame) -> Any:
    """Restore a game; return its packed observation."""
    game.restore(saved)
    return game.packed_observation()


def _counts(counts: Counts) -> dict[str, npt.NDArray[np.int32]]:
    return dict(zip(COUNTS, np.ascontiguousarray(counts[:, :_LIFE_LOST].T), strict=True))
