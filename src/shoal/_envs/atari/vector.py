"""Atari games behind Gymnasium's vector interface, and behind ale-py's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import index
from typing import Any, get_args

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from shoal._envs.atari.construction import PerSlot, atari_pool, game_settings, with_current_names
from shoal._envs.atari.game import SavedGame
from shoal._envs.atari.info_packing import COUNTS, AtariPool
from shoal._envs.atari.settings import ObservationType, Padding
from shoal._types import CRASHED, ColumnInfos
from shoal.errors import (
    ActionTypeError,
    InvalidSettingError,
    ResetMaskError,
    SlotFinishedError,
    SlotNotResetError,
)
from shoal.pools._base import SlotChoice, slot_numbers
from shoal.pools._forwarding import find_pool
from shoal.pools._restart_policy import OnCrash
from shoal.pools._shares import cores_from
from shoal.vector._pool_vector_env import Arrays, VectorEnv
from shoal.vector._seeding import Seed, slot_seeds

__all__ = ["AtariVector", "AtariVectorEnv", "VectorAtariEnv"]

Results = tuple[Arrays, Arrays, Arrays, Arrays, dict[str, Any]]


# Gymnasium's class is named again for skrl, which recognises vectors by their direct bases.
class AtariVector(VectorEnv, gymnasium.vector.VectorEnv[Any, Any, Arrays]):
    """Atari games as :func:`shoal.make` makes them, a :class:`shoal.vector.VectorEnv`.

    Infos have ``lives``, ``frame_number`` and ``episode_frame_number`` of every slot, and with
    ``life_loss_info`` whether a life was lost, ``life_lost``. The settings are explained by
    :class:`AtariVectorEnv`.
    """

    @property
    def _atari_pool(self) -> AtariPool:
        return find_pool(self._pool, AtariPool)

    @property
    def games(self) -> tuple[str, ...]:
        """The game of each slot."""
        return tuple(settings.game for settings in self._atari_pool.games)

    def get_action_meanings(self) -> list[str]:
        """What each action presses, such as ``"UPFIRE"``; the same in all slots."""
        meanings: list[str] = self._pool.call("get_action_meanings", slots=[0])[0]
        return meanings

    def save(self, slots: SlotChoice = None) -> list[SavedGame]:
        """All that these slots need to go on from where they are, one by one; can be pickled.

        Slots whose episode has ended, and that have not been reset, cannot be saved.
        """
        self._check_saving("save", slots)
        return self._atari_pool.save(slots)

    def restore(self, saved: Sequence[SavedGame], slots: SlotChoice = None) -> None:
        """Let slots go on from where they, or others with the same settings, were saved.

        What ``statistics`` counts of the episode under way is the slot's own, and goes on.
        """
        chosen = self._check_saving("restore", slots)
        games = [*saved] if isinstance(saved, Sequence) else [saved]
        if len(games) != len(chosen):
            raise ValueError(f"got {len(games)} saved games for {len(chosen)} slots")
        for slot, game in zip(chosen, games, strict=True):
            if not isinstance(game, SavedGame):
                raise TypeError(f"expected what save() returns, got {game!r} for slot {slot}")
            if replace(game.settings, reward_clipping=True) != replace(
                self._atari_pool.games[slot], reward_clipping=True
            ):
                raise ValueError(
                    f"slot {slot} has {self._atari_pool.games[slot]}, but was saved with "
                    f"{game.settings}"
                )
        self._atari_pool.restore(games, chosen)

    def _check_saving(self, doing: str, slots: SlotChoice) -> list[int]:
        chosen: list[int] = slot_numbers(slots, self.num_envs).tolist()
        for slot in chosen:
            if self._atari_pool.flying[slot]:
                raise AlreadyPendingCallError(f"{doing}: slot {slot} is in flight", "recv")
            if self._atari_pool.ended[slot]:
                raise SlotFinishedError(f"{doing}: slot {slot} awaits its reset")
        return chosen


class AtariVectorEnv(AtariVector):
    """Many Atari games, with the arguments and results of ``ale_py.vector_env.AtariVectorEnv``.

    The same seeds and actions give the same observations, rewards, flags and infos as there.
    What is different: the mode DISABLED; ``final_info`` in the mode SAME_STEP; a wrong action is an
    error; a seed may be a list or a NumPy integer; a vector without a seed has games that differ.
    Its functions for JAX (``xla``) and its native object (``ale``) are not there.

    Infos are arrays with a row for each slot of the batch: ``env_id``, ``lives``,
    ``frame_number``, ``episode_frame_number``, and what is asked for below.

    Args:
        game: The name of a game in any spelling (``"ms_pacman"``, ``"MsPacman"``,
            ``"ALE/MsPacman-v5"``), or one for each slot. If they need different actions, all of
            them have the full action space; it must be the same then, as it is but in two games.
        num_envs: How many; follows from a list of games.
        batch_size: How many slots a batch has: those that are done first. 0 for all of them.
        num_threads: How many processes step games, with the calling one, which works as well
            unless batches are smaller than the vector. 0 for as many as there are cores.
        thread_affinity_offset: Bind worker processes to this core and those after it; -1 for none.
        max_num_frames_per_episode: After how many frames an episode is truncated; None for never.
        repeat_action_probability: How likely the last action is repeated in a frame.
        full_action_space: All 18 actions (9 in Skiing and Lost Luggage), instead of those that the
            game takes notice of.
        continuous: Actions are (radius, angle, fire) of a joystick, or of a paddle.
        continuous_action_threshold: How far a joystick must be moved to count.
        autoreset_mode: When a slot whose episode has ended is reset.
        img_height: The height of a frame; it is resized as OpenCV's INTER_AREA does it.
        img_width: The width of a frame.
        grayscale: Frames are grey, or (height, width, 3) in colour.
        stack_num: How many frames an observation has.
        frameskip: For how many frames an action is taken.
        maxpool: A frame is the brighter of the last two, in each pixel.
        noop_max: How many frames, at the most, pass before an episode begins.
        episodic_life: Whether an episode ends when a life is lost.
        life_loss_info: Whether a lost life is reported as terminated, while the episode goes on.
        reward_clipping: Rewards are clipped to [-1, 1].
        use_fire_reset: Whether FIRE is pressed at the beginning of an episode, where there is one.
        mode: The mode of the game, or of each slot's.
        difficulty: The position of the difficulty switches, or of each slot's.
        obs_type: ``"grayscale"``, ``"rgb"`` or ``"ram"``, in place of ``grayscale``.
        padding: What the first observation of an episode has before its first frame: nothing
            (``"zero"``), or that frame (``"reset"``), as Gymnasium's FrameStackObservation has it.
        unclipped_reward: Infos have ``unclipped_reward``.
        statistics: Infos have ``episode``, with return (not clipped), length and seconds, at the
            end of one.
        render_mode: ``"rgb_array"`` for ``render``.
        copy: Whether batches are new arrays, or views that stay valid until the batch after next.
        on_crash: What the end of a worker process means: an error (``"raise"``), or that another
            one takes its place and its slots come back reset, truncated and with ``crashed`` in
            the infos (``"restart"``).
        step_timeout: Seconds after which a game that does not answer counts as crashed.

    Example:
        >>> envs = AtariVectorEnv("breakout", num_envs=2)
        >>> observations, infos = envs.reset(seed=0)
        >>> observations.shape
        (2, 4, 84, 84)
        >>> observations, rewards, terminations, truncations, infos = envs.step(np.array([2, 3]))
        >>> infos["lives"]
        array([5, 5], dtype=int32)
        >>> envs.close()
    """

    def __init__(
        self,
        game: str | Sequence[str],
        num_envs: int | None = None,
        *,
        batch_size: int = 0,
        num_threads: int = 0,
        thread_affinity_offset: int = -1,
        max_num_frames_per_episode: int | None = 108_000,
        repeat_action_probability: float = 0.0,
        full_action_space: bool = False,
        continuous: bool = False,
        continuous_action_threshold: float = 0.5,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        img_height: int = 84,
        img_width: int = 84,
        grayscale: bool = True,
        stack_num: int = 4,
        frameskip: int = 4,
        maxpool: bool = True,
        noop_max: int = 30,
        episodic_life: bool = False,
        life_loss_info: bool = False,
        reward_clipping: bool = True,
        use_fire_reset: bool = True,
        mode: PerSlot = None,
        difficulty: PerSlot = None,
        obs_type: ObservationType | None = None,
        padding: Padding = "zero",
        unclipped_reward: bool = False,
        statistics: bool = False,
        render_mode: str | None = None,
        copy: bool = True,
        on_crash: OnCrash = "raise",
        step_timeout: float | None = None,
    ) -> None:
        games = game_settings(
            game,
            num_envs,
            mode,
            difficulty,
            **with_current_names(
                {
                    "max_num_frames_per_episode": max_num_frames_per_episode,
                    "repeat_action_probability": repeat_action_probability,
                    "full_action_space": full_action_space,
                    "continuous": continuous,
                    "continuous_action_threshold": continuous_action_threshold,
                    "img_height": img_height,
                    "img_width": img_width,
                    "grayscale": grayscale,
                    "obs_type": obs_type,
                    "stack_num": stack_num,
                    "padding": padding,
                    "frameskip": frameskip,
                    "maxpool": maxpool,
                    "noop_max": noop_max,
                    "episodic_life": episodic_life,
                    "life_loss_info": life_loss_info,
                    "reward_clipping": reward_clipping,
                    "unclipped_reward": unclipped_reward,
                    "use_fire_reset": use_fire_reset,
                }
            ),
        )
        size = _checked("batch_size", batch_size, 0, len(games)) or len(games)
        threads = _checked("num_threads", num_threads, 0) or None
        first_core = _checked("thread_affinity_offset", thread_affinity_offset, -1)
        if on_crash not in get_args(OnCrash):
            raise InvalidSettingError(
                f"on_crash must be one of {get_args(OnCrash)}, got {on_crash!r}"
            )
        kept_safe = on_crash == "restart" or step_timeout is not None
        pool = atari_pool(
            games,
            processes=threads,
            caller_works=size == len(games) and not kept_safe,
            cores=None if first_core < 0 else cores_from(first_core),
            autoreset_mode=AutoresetMode(autoreset_mode),
            copy=copy,
            statistics=statistics,
            render_mode=render_mode,
            on_crash=on_crash,
            step_timeout=step_timeout,
        )
        super().__init__(pool)
        self.batch_size = size
        self.continuous = continuous
        self.continuous_action_threshold = continuous_action_threshold
        self.grayscale = games[0].obs_type == "grayscale"
        self.observation_space = batch_space(self.single_observation_space, size)
        self.action_space = batch_space(self.single_action_space, size)
        self._received: npt.NDArray[np.int64] | None = None  # whom the next actions are for

    def reset(
        self, *, seed: Seed = None, options: dict[str, Any] | None = None
    ) -> tuple[Arrays, dict[str, Any]]:
        """Begin new episodes.

        Args:
            seed: None, an integer from which to count up, or a seed for each slot that is reset.
            options: ``reset_mask``, a boolean array, selects the slots to reset. The others are
                left alone, and report what they have observed and told last.

        Returns:
            The observations and infos of a batch: of all slots, if it is as large as the vector.
        """
        mask = self._mask(options)
        slots = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        seeds = slot_seeds(seed, len(slots))
        if mask is None:
            self._pool.drop()
            self._pool.reset(None, seeds)
            observations, *_, infos = self.recv()
            return observations, infos
        self._received = np.arange(self.num_envs)
        crashed = None
        if len(slots):
            self._pool.reset(slots, seeds)
            crashed = self._pool.recv().infos.columns.get(CRASHED)
        told = {"env_id": self._received.astype(np.int32), **self._atari_pool.latest_counts()}
        if crashed is not None:
            told[CRASHED] = _spread(slots, crashed, self.num_envs)
        return self._pool.latest(), told

    def _mask(self, options: dict[str, Any] | None) -> npt.NDArray[np.bool_] | None:
        if options is None or "reset_mask" not in options:
            return None
        mask = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise ResetMaskError(f"`reset_mask` must be a boolean numpy array, got {mask!r}")
        if mask.shape != (self.num_envs,):
            raise ResetMaskError(
                f"`reset_mask` must have shape {(self.num_envs,)}, got {mask.shape}"
            )
        if self.batch_size < self.num_envs:
            raise ResetMaskError(
                f"`reset_mask` needs batches of all {self.num_envs} slots, got {self.batch_size=}"
            )
        if self._received is None and not mask.all():
            raise SlotNotResetError(
                f"slot {np.argmin(mask)} has never been reset: the first reset must include it"
            )
        if self._pool.in_flight:
            raise AlreadyPendingCallError(
                f"reset: {self._pool.in_flight} slots are in flight, receive them first", "recv"
            )
        return mask

    def step(self, actions: Any) -> Results:
        """Step the slots of the last batch, and return the next one."""
        self._check_begun("step")
        if self.batch_size < self.num_envs:
            self.send(actions)
            return self.recv()
        results = self._pool.step(self._integers(actions))
        self._received = np.arange(self.num_envs)
        return self._as_ale_py(self._received, *results)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Begin to step these slots, by default those of the last batch."""
        self._check_begun("send")
        self._pool.send(self._integers(actions), self._received if slots is None else slots)

    def recv(  # type: ignore[override]
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        slots: SlotChoice = None,
    ) -> Results:
        """The next batch of slots that are done; ``infos["env_id"]`` tells which.

        Args:
            min_slots: How many to wait for, if not for a batch.
            timeout: Seconds to wait at the most, None for no limit.
            slots: Wait for these slots instead, and return them in this order.

        Raises:
            ReceiveTimeoutError: The time is over. What is in flight can still be received.
        """
        most = None
        if min_slots is None and slots is None and self.batch_size < self.num_envs:
            min_slots = most = min(self.batch_size, self._pool.in_flight) or None
        batch = self._pool.recv(min_slots, timeout, max_slots=most, slots=slots)
        self._received = batch.slots
        return self._as_ale_py(*batch)

    def _as_ale_py(
        self,
        slots: Any,
        observations: Arrays,
        rewards: Arrays,
        terminated: Arrays,
        truncated: Arrays,
        told: ColumnInfos | Any,
    ) -> Results:
        columns = dict(told.columns)
        lost = columns.pop("life_lost", None)
        if lost is not None:
            terminated |= lost
            truncated &= ~lost
        infos: dict[str, Any] = {"env_id": slots.astype(np.int32), **columns}
        ended = terminated | truncated
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any():
            # Of a slot that has only lost a life, what it shows and tells is final in this sense.
            rows, final, final_columns = told.finals or (np.arange(0), observations[:0], {})
            infos["final_obs"] = np.where(_as_mask(ended, observations), observations, np.uint8(0))
            infos["final_obs"][rows] = final
            infos["final_info"] = {}
            for key in COUNTS:
                infos["final_info"][key] = np.where(ended, columns[key], np.int32(0))
                infos["final_info"][key][rows] = final_columns.get(key, ())
            infos["_final_obs"], infos["_final_info"] = ended, ended.copy()
        if told.episodes is not None:
            mask, returns, lengths, seconds = told.episodes
            infos["episode"] = {"r": returns, "l": lengths, "t": seconds}
            infos["_episode"] = mask
        return observations, rewards.astype(np.int32), terminated, truncated, infos

    def _integers(self, actions: Any) -> Any:
        """Refuse what ale-py refuses, and what would be cut off silently."""
        if not self.continuous and np.asarray(actions).dtype.kind not in "iu":
            raise ActionTypeError(f"actions must be integers, got {actions!r}")
        return actions

    def _check_begun(self, doing: str) -> None:
        if self._received is None:
            raise SlotNotResetError(f"{doing}: the games have not been reset yet")


class VectorAtariEnv(AtariVectorEnv):
    """:class:`AtariVectorEnv` with the names that its arguments had in earlier releases of ale-py.

    Args:
        game: The name of a game.
        num_envs: How many.
        batch_size: How many slots a batch has. 0 for all of them.
        num_threads: How many processes step games. 0 for as many as there are cores.
        seed: What the first reset is seeded with, if that is not given a seed itself.
        thread_affinity_offset: Bind worker processes to this core and those after it.
        frame_skip: ``frameskip``.
        fire_reset: ``use_fire_reset``.
        max_episode_steps: ``max_num_frames_per_episode``: it counts frames.
        **settings: As there.
    """

    def __init__(
        self,
        game: str | Sequence[str],
        num_envs: int | None = None,
        *,
        batch_size: int = 0,
        num_threads: int = 0,
        seed: Seed = 0,
        thread_affinity_offset: int = -1,
        frame_skip: int = 4,
        fire_reset: bool = True,
        max_episode_steps: int | None = 108_000,
        **settings: Any,
    ) -> None:
        super().__init__(
            game,
            num_envs,
            batch_size=batch_size,
            num_threads=num_threads,
            thread_affinity_offset=thread_affinity_offset,
            frameskip=frame_skip,
            use_fire_reset=fire_reset,
            max_num_frames_per_episode=max_episode_steps,
            **settings,
        )
        self._first_seed = seed

    def reset(
        self, *, seed: Seed = None, options: dict[str, Any] | None = None
    ) -> tuple[Arrays, dict[str, Any]]:
        """Begin new episodes; the first time, with the seed that the vector was made with."""
        if seed is None and self._received is None:
            seed = self._first_seed
        return super().reset(seed=seed, options=options)


def _checked(name: str, value: Any, least: int, most: int | None = None) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or index(value) < least:
        raise InvalidSettingError(f"{name} must be an integer of at least {least}, got {value!r}")
    if most is not None and index(value) > most:
        raise InvalidSettingError(f"{name} is {value}, but there are {most} slots")
    return index(value)


def _as_mask(ended: Arrays, observations: Arrays) -> Arrays:
    mask: Arrays = ended.reshape(-1, *[1] * (observations.ndim - 1))
    return mask


def _spread(rows: npt.NDArray[np.int64], values: Arrays, count: int) -> Arrays:
    """Values of some rows in an array of all rows."""
    spread = np.zeros((count, *values.shape[1:]), values.dtype)
    spread[rows] = values
    return spread
