"""The vector of Atari games that :func:`shoal.make` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium
from gymnasium.error import AlreadyPendingCallError

from shoal._envs.atari.game import SavedGame
from shoal._envs.atari.info_packing import AtariPool
from shoal.errors import SlotFinishedError
from shoal.pools._base import SlotChoice, slot_numbers
from shoal.pools._forwarding import find_pool
from shoal.vector._pool_vector_env import Arrays, VectorEnv

__all__ = ["AtariVector"]


# Gymnasium's class must be a direct base: skrl inspects only the direct bases of a vector.
class AtariVector(VectorEnv, gymnasium.vector.VectorEnv[Any, Any, Arrays]):
    """A :class:`shoal.vector.VectorEnv` of Atari games, as :func:`shoal.make` returns it.

    Infos contain ``lives``, ``frame_number`` and ``episode_frame_number`` for every slot and, with
    ``life_loss_info``, ``life_lost``: whether the step lost a life. :class:`AtariVectorEnv`
    documents the settings.
    """

    @property
    def _atari_pool(self) -> AtariPool:
        return find_pool(self._pool, AtariPool)

    @property
    def games(self) -> tuple[str, ...]:
        """The game of each slot."""
        return tuple(settings.game for settings in self._atari_pool.games)

    def get_action_meanings(self) -> list[str]:
        """Return the name of each action, such as ``"UPFIRE"``; all slots have the same actions."""
        meanings: list[str] = self._pool.call("get_action_meanings", slots=[0])[0]
        return meanings

    def save(self, slots: SlotChoice = None) -> list[SavedGame]:
        """Return a snapshot of each of these slots; snapshots can be pickled.

        Raises:
            AlreadyPendingCallError: A slot is in flight.
            SlotFinishedError: The episode of a slot has ended and the slot has not been reset.
        """
        self._check_idle("save", slots)
        return self._atari_pool.save(slots)

    def restore(self, saved: Sequence[SavedGame], slots: SlotChoice = None) -> None:
        """Restore slots from snapshots of slots with the same settings.

        The episode return and length that ``statistics`` reports are not restored: they continue
        from the current values of the slot.
        """
        chosen = self._check_idle("restore", slots)
        games = [*saved] if isinstance(saved, Sequence) else [saved]
        if len(games) != len(chosen):
            raise ValueError(f"got {len(games)} saved games for {len(chosen)} slots")
        for slot, game in zip(chosen, games, strict=True):
            if not isinstance(game, SavedGame):
                raise TypeError(f"slot {slot}: expected a game that save() returned, got {game!r}")
            if replace(game.settings, reward_clipping=True) != replace(
                self._atari_pool.games[slot], reward_clipping=True
            ):
                raise ValueError(
                    f"slot {slot} has {self._atari_pool.games[slot]}, but was saved with "
                    f"{game.settings}"
                )
        self._atari_pool.restore(games, chosen)

    def _check_idle(self, method: str, slots: SlotChoice) -> list[int]:
        chosen: list[int] = slot_numbers(slots, self.num_envs).tolist()
        for slot in chosen:
            if self._atari_pool.in_flight_mask[slot]:
                raise AlreadyPendingCallError(f"{method}: slot {slot} is in flight", "recv")
            if self._atari_pool.ended[slot]:
                raise SlotFinishedError(
                    f"{method}: slot {slot} has finished its episode and must be reset first"
                )
        return chosen
