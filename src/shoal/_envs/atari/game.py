"""One Atari game with the usual preprocessing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete

from shoal import _native
from shoal._envs.atari.cartridge import FIRE, NOOP, Scene, Start, opening_actions, shared_cartridge
from shoal._envs.atari.frame_painter import merging_tables, painter
from shoal._envs.atari.frame_window import FrameWindow
from shoal._envs.atari.games import ale
from shoal._envs.atari.palettes import reds_greens_blues
from shoal._envs.atari.randomness import StickyActions, Words
from shoal._envs.atari.settings import GameSettings

if TYPE_CHECKING:
    from ale_py import ALEInterface, ALEState

__all__ = ["AtariGame", "SavedGame"]

_UNLIMITED = 2**62
_EMULATOR_SEEDS = 2**31

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class SavedGame:
    """A snapshot of a game; can be pickled."""

    settings: GameSettings
    emulator: bytes
    screens: tuple[Pixels, Pixels]
    shown: Pixels
    stack: Pixels
    counters: dict[str, Any]
    noops: Any
    sticky: Any


class AtariGame(gymnasium.Env[Pixels, Any]):
    """One slot of a :class:`shoal.atari.AtariVectorEnv`.

    Implements ``FrameStackObservation(AtariPreprocessing(AtariEnv(...)))`` and the further settings
    of ale-py's vector environment, with the same random numbers. With ``life_loss_info``, a lost
    life is reported as ``info["life_lost"]``.

    The observation is a view of memory that later steps overwrite.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012

    def __init__(self, settings: GameSettings, render_mode: str | None = None) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.settings = settings
        self.metadata = {**self.metadata, "render_fps": max(1, 60 // settings.frameskip)}
        self.render_mode = render_mode
        self.cartridge = cartridge = shared_cartridge(
            settings.game, settings.mode, settings.difficulty
        )
        full = settings.full_action_space or settings.continuous
        self._actions = cartridge.legal_actions if full else cartridge.minimal_actions
        self.action_space = _polar_space() if settings.continuous else Discrete(len(self._actions))
        shape = self._frame_shape()
        self.observation_space = Box(0, 255, (settings.stack_num, *shape), np.uint8)
        self._window = FrameWindow(settings.stack_num, shape)
        self._painter: _native.ScreenPainter | None = None
        if settings.obs_type != "ram":
            size = settings.img_height, settings.img_width
            self._painter = painter(
                cartridge.signal, settings.obs_type, cartridge.screen_size, size
            )
        # The latest two screens, which are merged, and the buffer of the next one.
        self._screens = np.zeros((3, *cartridge.screen_size), np.uint8)
        self._frame_limit = settings.max_num_frames_per_episode or _UNLIMITED
        self._fires = settings.use_fire_reset and FIRE in self._actions
        entropy = int.from_bytes(os.urandom(4))
        self._noops = Words(entropy)
        self._sticky: StickyActions | None = None
        self._repeats_in_emulator = False
        if settings.repeat_action_probability > 0:
            # Only the emulator can repeat the buttons that its own reset presses.
            self._repeats_in_emulator = cartridge.reset_presses_buttons
            if not self._repeats_in_emulator:
                self._sticky = StickyActions(settings.repeat_action_probability, entropy)
        self._emulator_seed = entropy % _EMULATOR_SEEDS
        # Created by the first step, because a reset rarely needs it and creation takes 0.1 s.
        self._emulator: ALEInterface | None = None
        self._turns: _native.AtariTurns | None = None
        self._pending_state: ALEState = cartridge.first_start.state  # restored on creation
        self._restored_screen: Pixels | None = None  # the screen of a restored state
        self._resets = 0  # since the last seed
        self._uncounted_frames = 0  # frames that the emulator's counter does not include
        self._lives = self._elapsed = 0

    def _frame_shape(self) -> tuple[int, ...]:
        settings = self.settings
        if settings.obs_type == "ram":
            return (self.cartridge.ram_size,)
        size = settings.img_height, settings.img_width
        return size if settings.obs_type == "grayscale" else (*size, 3)

    # Episodes

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[Pixels, dict[str, Any]]:
        """Start an episode. A reset with a seed behaves like a new console."""
        is_new = seed is not None or self._resets == 0
        if seed is not None:
            super().reset(seed=seed)
            self._noops.seed(seed)
            if self._sticky is not None:
                self._sticky.words.seed(seed)
            self._emulator_seed = seed % _EMULATOR_SEEDS
        if is_new:
            frames = self.cartridge.just_loaded.getFrameNumber()
        else:
            frames = self._counter.getFrameNumber() + self._uncounted_frames
        self._resets = 1 if is_new else self._resets + 1
        noops = max(0, self._noops.below(max(1, self.settings.noop_max)) - self._fires)
        if self._sticky is not None:
            self._sticky.begin()
        scene = self._start_episode(is_new, noops, frames)
        self._observe_start(scene)
        self._lives = scene.lives
        self._elapsed = 0
        return self._window.stack, self._info(0, life_lost=False)

    def _start_episode(self, is_new: bool, noops: int, frames: int) -> Scene:
        """Bring the game to the state in which the first step begins.

        Args:
            is_new: Whether to behave like a new console.
            noops: The number of no-op frames.
            frames: The frame counter before the reset.
        """
        cartridge = self.cartridge
        count = self._resets if cartridge.recurrence == "counted" else 1
        start = None if cartridge.recurrence == "none" else cartridge.start(count)
        if start is None or self._repeats_in_emulator:
            return self._reset_console(is_new, noops)
        self._count_frames(frames, start)
        if self._sticky is None and start is cartridge.first_start:
            start = cartridge.opening(noops, self._fires)
        elif noops or self._fires:
            if self._emulator is not None:
                return self._restore_and_open(self._emulator, start, noops)
            with cartridge.borrowed() as emulator:
                scene = self._restore_and_open(emulator, start, noops)
                self._pending_state = emulator.cloneState()
                return scene
        self._restore(start.state)
        return start.scene

    def _reset_console(self, is_new: bool, noops: int) -> Scene:
        if is_new and self._repeats_in_emulator:
            emulator = self._create_emulator()
        else:
            emulator = self._get_emulator()
            if is_new:
                emulator.restoreState(self.cartridge.just_loaded)
        if is_new:
            self._uncounted_frames = 0
        emulator.reset_game()
        if self.cartridge.recurrence == "counted":
            self.cartridge.keep(self._resets, Start.of(emulator))
        self._play_opening(emulator, noops)
        return Scene.of(emulator)

    def _restore_and_open(self, emulator: ALEInterface, start: Start, noops: int) -> Scene:
        emulator.restoreState(start.state)
        self._play_opening(emulator, noops)
        return Scene.of(emulator)

    def _count_frames(self, before: int, start: Start) -> None:
        """Continue the frame count after restoring a start state, which has a separate count.

        A reset emulates frames in games whose mode is selected by pressing a switch.
        """
        state = start.state
        frames_at_reset = state.getFrameNumber() - state.getEpisodeFrameNumber()
        self._uncounted_frames = before - frames_at_reset

    def _play_opening(self, emulator: ALEInterface, noops: int) -> None:
        sticky = self._sticky
        for action in opening_actions(noops, self._fires):
            emulator.act(action if sticky is None else sticky.frame(action, 1.0)[0])
            if emulator.game_over():
                emulator.reset_game()
                if sticky is not None:
                    sticky.begin()

    def _observe_start(self, scene: Scene) -> None:
        """Write the first observation of an episode."""
        frame = self._window.begin()
        if self._painter is None:
            frame[...] = scene.ram
        else:
            self._set_screens(scene.screen, scene.screen)
            self._painter.paint(scene.screen, None, frame)
        if self.settings.padding == "reset":
            self._window.repeat_first()
        self._restored_screen = scene.screen

    def _set_screens(self, latest: Pixels, previous: Pixels) -> None:
        screens = self._screens if self._turns is None else self._turns.screens
        screens[0][...], screens[1][...] = latest, previous

    def _restore(self, state: ALEState) -> None:
        if self._emulator is None:
            self._pending_state = state
        else:
            self._emulator.restoreState(state)

    def _get_emulator(self) -> ALEInterface:
        """Return this game's emulator; create it if necessary."""
        if self._emulator is None:
            self._create_emulator().restoreState(self._pending_state)
            assert self._emulator is not None, "it was just created"
        return self._emulator

    def _create_emulator(self) -> ALEInterface:
        """Create an emulator, in the state after loading the ROM."""
        settings = self.settings
        self._emulator = self.cartridge.emulator(
            settings.repeat_action_probability if self._repeats_in_emulator else 0.0,
            self._emulator_seed,
        )
        self._turns = _native.AtariTurns(
            self._emulator,
            self._screens,
            self._painter,
            None if self._sticky is None else self._sticky.frame,
            settings.frameskip,
            settings.maxpool and settings.frameskip > 1,
            settings.episodic_life,
        )
        return self._emulator

    # Steps

    def step(self, action: Any) -> tuple[Pixels, float, bool, bool, dict[str, Any]]:
        """Repeat an action for ``frameskip`` frames or until the episode ends."""
        if self._resets == 0:
            raise ResetNeeded("step: the game has not been reset yet")
        if self._turns is None:
            self._get_emulator()
            assert self._turns is not None, "created with the emulator"
        settings = self.settings
        if settings.continuous:
            joystick, strength = self._from_polar(action)
        else:
            joystick, strength = self._actions[action], 1.0
        self._restored_screen = None
        frame = self._window.next()
        reward, self._lives, frames, terminated, life_lost, is_painted, is_captured = (
            self._turns.play(
                joystick, strength, self._lives, self._frame_limit - self._elapsed, frame
            )
        )
        self._elapsed += frames
        if settings.episodic_life and life_lost:
            terminated = True
        truncated = self._elapsed >= self._frame_limit and not terminated
        if not is_painted:
            self._draw_last(frame, is_captured)
        clipped = max(-1, min(1, reward)) if settings.reward_clipping else reward
        info = self._info(reward, life_lost)
        return self._window.stack, float(clipped), terminated, truncated, info

    def _draw_last(self, frame: Pixels, is_captured: bool) -> None:
        """Write the frame of a step that ended early, or a RAM observation.

        As in ale-py: if the step ended after the first of the two screens that are merged, that
        screen is merged into the previous frame; if it ended earlier, the previous frame is
        repeated.
        """
        if self._painter is None:
            assert self._emulator is not None, "a step creates it"
            self._emulator.getRAM(frame)
        elif not is_captured:
            frame[...] = self._window.previous
        else:
            assert self._turns is not None, "a step creates it"
            latest, previous, first = self._turns.screens
            tables = merging_tables(self.cartridge.signal, self.settings.obs_type)
            alone = tables.diagonal(axis1=1, axis2=2)
            merged = np.maximum(tables[:, latest, previous], alone[:, first])
            picture = merged[0] if len(merged) == 1 else np.moveaxis(merged, 0, -1)
            _native.resize_area(np.ascontiguousarray(picture), frame)

    def _from_polar(self, action: Pixels) -> tuple[int, float]:
        """Convert a continuous action, (radius, angle, fire), to a joystick action and strength."""
        radius, angle, fire = action  # float32, and ale-py computes in float32
        limit = self.settings.continuous_action_threshold
        x, y = radius * np.cos(angle), radius * np.sin(angle)
        across, up = int(x > limit) - int(x < -limit), int(y > limit) - int(y < -limit)
        return _joystick_action(across, up, bool(fire > limit)), float(radius)

    # Infos

    @property
    def _counter(self) -> ALEInterface | ALEState:
        """The owner of the frame counters: the emulator, or its state before it is created."""
        return self._pending_state if self._emulator is None else self._emulator

    def _info(self, reward: int, life_lost: bool) -> dict[str, Any]:
        counter = self._counter
        info: dict[str, Any] = {
            "lives": self._lives,
            "frame_number": self._uncounted_frames + counter.getFrameNumber(),
            "episode_frame_number": counter.getEpisodeFrameNumber(),
        }
        if self.settings.unclipped_reward:
            info["unclipped_reward"] = reward
        if self.settings.life_loss_info:
            info["life_lost"] = life_lost
        return info

    def get_action_meanings(self) -> list[str]:
        """Return the name of each action, such as ``"UPFIRE"``."""
        return [ale().Action(action).name for action in self._actions]

    def render(self) -> Pixels | None:
        """Return the screen in colour and full size."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                "You are calling render method without specifying any render mode. "
                "Make the vector with render_mode='rgb_array'."
            )
            return None
        return reds_greens_blues(self.cartridge.signal)[self._screen()]

    def _screen(self) -> Pixels:
        if self._restored_screen is not None:
            return self._restored_screen
        if self._emulator is None:
            return self.cartridge.first_start.scene.screen
        return self._emulator.getScreen()

    # Saving

    def save(self) -> SavedGame:
        """Return a snapshot of the game."""
        emulator = self._emulator
        state = self._pending_state
        if emulator is not None:
            state = emulator.cloneState(include_rng=self._repeats_in_emulator)
        latest, previous, _ = self._screens if self._turns is None else self._turns.screens
        sticky = self._sticky
        return SavedGame(
            self.settings,
            state.serialize(),
            (latest.copy(), previous.copy()),
            self._screen().copy(),
            self._window.stack.copy(),
            {name: getattr(self, name) for name in _COUNTERS},
            self._noops.state,
            None if sticky is None else (sticky.words.state, sticky.last),
        )

    def restore(self, saved: SavedGame) -> None:
        """Restore a snapshot of a game with the same settings.

        The emulator does not save its frame buffer: in a few games, such as Q*bert and Tetris, the
        next frames may show parts of the old screen.
        """
        if saved.settings != self.settings:
            raise ValueError(f"saved with {saved.settings}, but the game has {self.settings}")
        self._restore(ale().ALEState(saved.emulator))
        self._set_screens(*saved.screens)
        self._restored_screen = saved.shown
        self._window.stack = saved.stack
        for name, value in saved.counters.items():
            setattr(self, name, value)
        self._noops.state = saved.noops
        if self._sticky is not None:
            self._sticky.words.state, self._sticky.last = saved.sticky


_COUNTERS = ("_resets", "_uncounted_frames", "_lives", "_elapsed")

_ACROSS = {-1: "LEFT", 0: "", 1: "RIGHT"}
_UP = {-1: "DOWN", 0: "", 1: "UP"}


@cache
def _joystick_action(across: int, up: int, fires: bool) -> int:
    """Return the number of a joystick action.

    >>> _joystick_action(0, 0, False), _joystick_action(-1, 1, True)
    (0, 15)
    """
    name = _UP[up] + _ACROSS[across] + "FIRE" * fires
    number: int = ale().Action[name].value if name else NOOP
    return number


def _polar_space() -> Box:
    return Box(np.array([0.0, -np.pi, 0.0], np.float32), np.array([1.0, np.pi, 1.0], np.float32))
