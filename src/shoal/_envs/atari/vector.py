"""Atari vectors with the interface of ale-py."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from shoal._envs.atari.atari_vector import AtariVector
from shoal._envs.atari.construction import PerSlot, atari_pool, game_settings, with_current_names
from shoal._envs.atari.info_packing import COUNTS
from shoal._envs.atari.settings import ObservationType, Padding
from shoal._types import CRASHED, ColumnInfos
from shoal.errors import (
    ActionTypeError,
    InvalidSettingError,
    ResetMaskError,
    SlotNotResetError,
)
from shoal.pools._base import SlotChoice
from shoal.pools._restart_policy import OnCrash
from shoal.pools._shares import cores_from
from shoal.vector._pool_vector_env import Arrays
from shoal.vector._seeding import Seed, slot_seeds

__all__ = ["AtariVector", "AtariVectorEnv", "VectorAtariEnv"]

Results = tuple[Arrays, Arrays, Arrays, Arrays, dict[str, Any]]


class AtariVectorEnv(AtariVector):
    """A vector of Atari games with the interface of ``ale_py.vector_env.AtariVectorEnv``.

    Observations, rewards, flags and infos equal ale-py's for the same seeds and actions.
    Differences:

    - The autoreset mode DISABLED is supported, and ``final_info`` in the mode SAME_STEP.
    - An invalid action raises an error.
    - A seed may be a list or a NumPy integer. Without a seed, each game is seeded randomly.
    - ``xla`` (the JAX interface) and ``ale`` (the native object) do not exist.

    Infos are arrays with a row for each slot of the batch: ``env_id``, ``lives``,
    ``frame_number``, ``episode_frame_number``, and the optional ones below.

    Args:
        game: The name of a game in any common spelling (``"ms_pacman"``, ``"MsPacman"``,
            ``"ALE/MsPacman-v5"``), or a name for each slot. Games with different minimal action
            sets all use the full action set, which must be the same for all of them (it differs
            only in Skiing and Lost Luggage).
        num_envs: The number of slots. Defaults to the number of games.
        batch_size: The number of slots per batch; a batch contains the slots that finish first. 0
            means all slots.
        num_threads: The number of processes that step games. The calling process is one of them,
            unless ``batch_size`` is smaller than ``num_envs``. 0 means the number of cores.
        thread_affinity_offset: The core that the first worker process is bound to; the others are
            bound to the following cores. -1 means that processes are not bound.
        max_num_frames_per_episode: The number of frames after which an episode is truncated; None
            for no limit.
        repeat_action_probability: The probability that a frame repeats the previous action.
        full_action_space: Whether to use all 18 actions (9 in Skiing and Lost Luggage) instead of
            the minimal action set of the game.
        continuous: Whether actions are (radius, angle, fire) of a joystick or paddle.
        continuous_action_threshold: The joystick position above which a direction is pressed.
        autoreset_mode: When a slot is reset after its episode has ended.
        img_height: The height of a frame. Frames are resized as by OpenCV's INTER_AREA.
        img_width: The width of a frame.
        grayscale: Whether frames are grayscale; otherwise they have shape (height, width, 3).
        stack_num: The number of frames in an observation.
        frameskip: The number of frames for which an action is repeated.
        maxpool: Whether a frame is the pixel-wise maximum of the last two emulator frames.
        noop_max: The upper bound of the random number of no-op frames at the start of an episode.
        episodic_life: Whether an episode ends when a life is lost.
        life_loss_info: Whether losing a life sets ``terminated`` without ending the episode.
        reward_clipping: Whether rewards are clipped to [-1, 1].
        use_fire_reset: Whether FIRE is pressed at the start of an episode if the game has FIRE.
        mode: The game mode, or one for each slot.
        difficulty: The game difficulty, or one for each slot.
        obs_type: ``"grayscale"``, ``"rgb"`` or ``"ram"``; overrides ``grayscale``.
        padding: How the first observation of an episode is filled before its first frame: with
            zeros (``"zero"``) or with that frame (``"reset"``), as Gymnasium's
            FrameStackObservation offers.
        unclipped_reward: Whether infos contain ``unclipped_reward``.
        statistics: Whether infos contain ``episode`` at the end of an episode, with the unclipped
            return, length and duration in seconds.
        render_mode: ``"rgb_array"`` or None.
        copy: Whether batches are new arrays. If False, they are views that stay valid until the
            batch after next.
        on_crash: What happens if a worker process dies. ``"raise"``: an error is raised.
            ``"restart"``: a new process replaces it, and its slots are reported as truncated, with
            ``crashed`` in the infos, and reset.
        step_timeout: The number of seconds after which a game that does not respond counts as
            crashed.

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
        size = _check_integer("batch_size", batch_size, 0, len(games)) or len(games)
        threads = _check_integer("num_threads", num_threads, 0) or None
        first_core = _check_integer("thread_affinity_offset", thread_affinity_offset, -1)
        if on_crash not in get_args(OnCrash):
            raise InvalidSettingError(
                f"on_crash must be one of {get_args(OnCrash)}, got {on_crash!r}"
            )
        is_supervised = on_crash == "restart" or step_timeout is not None
        pool = atari_pool(
            games,
            processes=threads,
            caller_works=size == len(games) and not is_supervised,
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
        self._received: npt.NDArray[np.int64] | None = (
            None  # the slots that the next actions are for
        )

    def reset(
        self, *, seed: Seed = None, options: dict[str, Any] | None = None
    ) -> tuple[Arrays, dict[str, Any]]:
        """Start new episodes.

        Args:
            seed: None, the seed of the first slot (others get consecutive seeds), or a seed for
                each slot that is reset.
            options: ``reset_mask``, a boolean array, selects the slots to reset. The other slots
                continue, and their rows contain their latest observations and infos.

        Returns:
            The observations and infos of a batch of ``batch_size`` slots.
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
        infos = {"env_id": self._received.astype(np.int32), **self._atari_pool.latest_counts()}
        if crashed is not None:
            infos[CRASHED] = _spread(slots, crashed, self.num_envs)
        return self._pool.latest(), infos

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
        self._check_reset("step")
        if self.batch_size < self.num_envs:
            self.send(actions)
            return self.recv()
        results = self._pool.step(self._check_dtype(actions))
        self._received = np.arange(self.num_envs)
        return self._as_ale_py(self._received, *results)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Send actions to these slots, by default to those of the last batch."""
        self._check_reset("send")
        self._pool.send(self._check_dtype(actions), self._received if slots is None else slots)

    def recv(  # type: ignore[override]
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        slots: SlotChoice = None,
    ) -> Results:
        """Return the next batch; ``infos["env_id"]`` contains its slots.

        Args:
            min_slots: The minimum number of slots to wait for. By default, a batch contains
                ``batch_size`` slots.
            timeout: The number of seconds to wait; None for no limit.
            slots: The slots to wait for; they are returned in this order.

        Raises:
            ReceiveTimeoutError: The timeout has expired. Slots in flight can still be received.
        """
        max_slots = None
        if min_slots is None and slots is None and self.batch_size < self.num_envs:
            min_slots = max_slots = min(self.batch_size, self._pool.in_flight) or None
        batch = self._pool.recv(min_slots, timeout, max_slots=max_slots, slots=slots)
        self._received = batch.slots
        return self._as_ale_py(*batch)

    def _as_ale_py(
        self,
        slots: Any,
        observations: Arrays,
        rewards: Arrays,
        terminated: Arrays,
        truncated: Arrays,
        raw_infos: ColumnInfos | Any,
    ) -> Results:
        """Convert a batch of the pool to ale-py's format."""
        columns = dict(raw_infos.columns)
        lost = columns.pop("life_lost", None)
        if lost is not None:
            terminated |= lost
            truncated &= ~lost
        infos: dict[str, Any] = {"env_id": slots.astype(np.int32), **columns}
        ended = terminated | truncated
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any():
            # A slot that has only lost a life was not reset: its current row is the final one.
            rows, final, final_columns = raw_infos.finals or (np.arange(0), observations[:0], {})
            infos["final_obs"] = np.where(_as_mask(ended, observations), observations, np.uint8(0))
            infos["final_obs"][rows] = final
            infos["final_info"] = {}
            for key in COUNTS:
                infos["final_info"][key] = np.where(ended, columns[key], np.int32(0))
                infos["final_info"][key][rows] = final_columns.get(key, ())
            infos["_final_obs"], infos["_final_info"] = ended, ended.copy()
        if raw_infos.episodes is not None:
            mask, returns, lengths, seconds = raw_infos.episodes
            infos["episode"] = {"r": returns, "l": lengths, "t": seconds}
            infos["_episode"] = mask
        return observations, rewards.astype(np.int32), terminated, truncated, infos

    def _check_dtype(self, actions: Any) -> Any:
        """Reject non-integer actions, as ale-py does, instead of truncating them silently."""
        if not self.continuous and np.asarray(actions).dtype.kind not in "iu":
            raise ActionTypeError(f"actions must be integers, got {actions!r}")
        return actions

    def _check_reset(self, method: str) -> None:
        if self._received is None:
            raise SlotNotResetError(f"{method}: the games have not been reset yet")


class VectorAtariEnv(AtariVectorEnv):
    """:class:`AtariVectorEnv` with the argument names of earlier releases of ale-py.

    Args:
        game: The name of a game, or a name for each slot.
        num_envs: The number of slots.
        batch_size: The number of slots per batch; 0 means all slots.
        num_threads: The number of processes that step games; 0 means the number of cores.
        seed: The seed of the first reset, unless that reset has a seed.
        thread_affinity_offset: The core that the first worker process is bound to.
        frame_skip: The same as ``frameskip``.
        fire_reset: The same as ``use_fire_reset``.
        max_episode_steps: The same as ``max_num_frames_per_episode``; it counts frames.
        **settings: Further arguments of :class:`AtariVectorEnv`.
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
        """Start new episodes; the first reset uses the seed of the constructor."""
        if seed is None and self._received is None:
            seed = self._first_seed
        return super().reset(seed=seed, options=options)


def _check_integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or index(value) < minimum:
        raise InvalidSettingError(f"{name} must be an integer of at least {minimum}, got {value!r}")
    if maximum is not None and index(value) > maximum:
        raise InvalidSettingError(f"{name} is {value}, but there are {maximum} slots")
    return index(value)


def _as_mask(ended: Arrays, observations: Arrays) -> Arrays:
    mask: Arrays = ended.reshape(-1, *[1] * (observations.ndim - 1))
    return mask


def _spread(rows: npt.NDArray[np.int64], values: Arrays, count: int) -> Arrays:
    """Return an array of ``count`` rows with these values in these rows, zero elsewhere."""
    spread = np.zeros((count, *values.shape[1:]), values.dtype)
    spread[rows] = values
    return spread
