"""One Atari game, preprocessed as is usual in reinforcement learning."""

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
from shoal._envs.atari.cartridge import FIRE, NOOP, Scene, Start, insert, opening_actions
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
    """All that a game needs to go on from where it was; can be pickled."""

    settings: GameSettings
    emulator: bytes
    screens: tuple[Pixels, Pixels]
    shown: Pixels
    stack: Pixels
    counters: dict[str, Any]
    noops: Any
    sticky: Any


class AtariGame(gymnasium.Env[Pixels, Any]):
    """A game as :class:`shoal.atari.AtariVectorEnv` steps many of.

    It does what ``FrameStackObservation(AtariPreprocessing(AtariEnv(...)))`` does, and more, and
    draws its random numbers as ale-py's vector environment does. A lost life that is to be reported
    without ending the episode is ``info["life_lost"]``.

    The observation is a view of memory that the game goes on to use: copy it to keep it.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012

    def __init__(self, settings: GameSettings, render_mode: str | None = None) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.settings = settings
        self.metadata = {**self.metadata, "render_fps": max(1, 60 // settings.frameskip)}
        self.render_mode = render_mode
        self.cartridge = cartridge = insert(settings.game, settings.mode, settings.difficulty)
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
        # The newest two, which are merged, and where the next one goes.
        self._screens = np.zeros((3, *cartridge.screen_size), np.uint8)
        self._frame_limit = settings.max_num_frames_per_episode or _UNLIMITED
        self._fires = settings.use_fire_reset and FIRE in self._actions
        entropy = int.from_bytes(os.urandom(4))
        self._noops = Words(entropy)
        self._sticky: StickyActions | None = None
        self._repeats_in_emulator = False
        if settings.repeat_action_probability > 0:
            # A reset that presses buttons may repeat them, which only the emulator can do.
            self._repeats_in_emulator = cartridge.reset_presses_buttons
            if not self._repeats_in_emulator:
                self._sticky = StickyActions(settings.repeat_action_probability, entropy)
        self._emulator_seed = entropy % _EMULATOR_SEEDS
        # Made with the first step: a reset can do without, and making one takes 0.1 s.
        self._emulator: ALEInterface | None = None
        self._turns: _native.AtariTurns | None = None
        self._awaiting: ALEState = cartridge.first_start.state  # what it will begin with
        self._shown: Pixels | None = None  # the screen of a state that was restored
        self._resets = 0  # since the last seed
        self._uncounted_frames = 0  # those that the emulator does not know of any more
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
        """Begin an episode; after a seed, as on a console that was switched on anew."""
        anew = seed is not None or self._resets == 0
        if seed is not None:
            super().reset(seed=seed)
            self._noops.seed(seed)
            if self._sticky is not None:
                self._sticky.words.seed(seed)
            self._emulator_seed = seed % _EMULATOR_SEEDS
        if anew:
            frames = self.cartridge.just_loaded.getFrameNumber()
        else:
            frames = self._counter.getFrameNumber() + self._uncounted_frames
        self._resets = 1 if anew else self._resets + 1
        noops = max(0, self._noops.below(max(1, self.settings.noop_max)) - self._fires)
        if self._sticky is not None:
            self._sticky.begin()
        scene = self._open(anew, noops, frames)
        self._show_start(scene)
        self._lives = scene.lives
        self._elapsed = 0
        return self._window.stack, self._info(0, life_lost=False)

    def _open(self, anew: bool, noops: int, frames: int) -> Scene:
        """Bring the game to where the player takes over.

        Args:
            anew: Whether the console was switched on anew, or has been played on before.
            noops: How many frames pass first.
            frames: How many there have been so far.
        """
        cartridge = self.cartridge
        count = self._resets if cartridge.recurrence == "counted" else 1
        start = None if cartridge.recurrence == "none" else cartridge.start(count)
        if start is None or self._repeats_in_emulator:
            return self._reset_for_real(anew, noops)
        self._count_frames(frames, start)
        if self._sticky is None and start is cartridge.first_start:
            start = cartridge.opening(noops, self._fires)
        elif noops or self._fires:
            if self._emulator is not None:
                return self._played_opening(self._emulator, start, noops)
            with cartridge.borrowed() as emulator:
                scene = self._played_opening(emulator, start, noops)
                self._awaiting = emulator.cloneState()
                return scene
        self._restore(start.state)
        return start.scene

    def _reset_for_real(self, anew: bool, noops: int) -> Scene:
        if anew and self._repeats_in_emulator:
            emulator = self._switch_on()
        else:
            emulator = self._switched_on()
            if anew:
                emulator.restoreState(self.cartridge.just_loaded)
        if anew:
            self._uncounted_frames = 0
        emulator.reset_game()
        if self.cartridge.recurrence == "counted":
            self.cartridge.keep(self._resets, Start.of(emulator))
        self._play_opening(emulator, noops)
        return Scene.of(emulator)

    def _played_opening(self, emulator: ALEInterface, start: Start, noops: int) -> Scene:
        emulator.restoreState(start.state)
        self._play_opening(emulator, noops)
        return Scene.of(emulator)

    def _count_frames(self, before: int, start: Start) -> None:
        """Go on counting frames after a start was restored, which brings a count of its own.

        A reset has frames itself in games whose mode is chosen by pressing a switch.
        """
        state = start.state
        counted = state.getFrameNumber() - state.getEpisodeFrameNumber()
        self._uncounted_frames = before - counted

    def _play_opening(self, emulator: ALEInterface, noops: int) -> None:
        sticky = self._sticky
        for action in opening_actions(noops, self._fires):
            emulator.act(action if sticky is None else sticky.frame(action, 1.0)[0])
            if emulator.game_over():
                emulator.reset_game()
                if sticky is not None:
                    sticky.begin()

    def _show_start(self, scene: Scene) -> None:
        """Make the first observation of an episode."""
        frame = self._window.begin()
        if self._painter is None:
            frame[...] = scene.ram
        else:
            self._put_screens(scene.screen, scene.screen)
            self._painter.paint(scene.screen, None, frame)
        if self.settings.padding == "reset":
            self._window.repeat_first()
        self._shown = scene.screen

    def _put_screens(self, newest: Pixels, before: Pixels) -> None:
        screens = self._screens if self._turns is None else self._turns.screens
        screens[0][...], screens[1][...] = newest, before

    def _restore(self, state: ALEState) -> None:
        if self._emulator is None:
            self._awaiting = state
        else:
            self._emulator.restoreState(state)

    def _switched_on(self) -> ALEInterface:
        """The game's own emulator."""
        if self._emulator is None:
            self._switch_on().restoreState(self._awaiting)
            assert self._emulator is not None, "it was switched on"
        return self._emulator

    def _switch_on(self) -> ALEInterface:
        """Make a new emulator for this game, in the state after loading."""
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
        """Take an action for as many frames as are skipped, or until the episode ends."""
        if self._resets == 0:
            raise ResetNeeded("step: the game has not been reset yet")
        if self._turns is None:
            self._switched_on()
            assert self._turns is not None, "an emulator is there now"
        settings = self.settings
        if settings.continuous:
            pressed, strength = self._polar(action)
        else:
            pressed, strength = self._actions[action], 1.0
        self._shown = None
        frame = self._window.next()
        reward, self._lives, frames, terminated, life_lost, is_painted, is_captured = (
            self._turns.play(
                pressed, strength, self._lives, self._frame_limit - self._elapsed, frame
            )
        )
        self._elapsed += frames
        if settings.episodic_life and life_lost:
            terminated = True
        truncated = self._elapsed >= self._frame_limit and not terminated
        if not is_painted:
            self._draw_last(frame, is_captured)
        shown = max(-1, min(1, reward)) if settings.reward_clipping else reward
        info = self._info(reward, life_lost)
        return self._window.stack, float(shown), terminated, truncated, info

    def _draw_last(self, frame: Pixels, is_captured: bool) -> None:
        """Draw the frame of a step that was cut short, or one that is no picture.

        If it was cut short between the two screens that are merged, the reference merges the first
        of them into the picture of the step before; else it shows that once more.
        """
        if self._painter is None:
            assert self._emulator is not None, "it was stepped"
            self._emulator.getRAM(frame)
        elif not is_captured:
            frame[...] = self._window.previous
        else:
            assert self._turns is not None, "it was stepped"
            newest, before, seen = self._turns.screens
            tables = merging_tables(self.cartridge.signal, self.settings.obs_type)
            alone = tables.diagonal(axis1=1, axis2=2)
            merged = np.maximum(tables[:, newest, before], alone[:, seen])
            picture = merged[0] if len(merged) == 1 else np.moveaxis(merged, 0, -1)
            _native.resize_area(np.ascontiguousarray(picture), frame)

    def _polar(self, action: Pixels) -> tuple[int, float]:
        """What a continuous action, (radius, angle, fire), presses, and how strongly."""
        radius, angle, fire = action  # of 32 bits, and so is all that is computed of them
        limit = self.settings.continuous_action_threshold
        x, y = radius * np.cos(angle), radius * np.sin(angle)
        across, up = int(x > limit) - int(x < -limit), int(y > limit) - int(y < -limit)
        return _pressed(across, up, bool(fire > limit)), float(radius)

    # What is told

    @property
    def _counter(self) -> ALEInterface | ALEState:
        """What counts frames."""
        return self._awaiting if self._emulator is None else self._emulator

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
        """What each action presses, such as ``"UPFIRE"``."""
        return [ale().Action(action).name for action in self._actions]

    def render(self) -> Pixels | None:
        """The screen in colour and in full size."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                "You are calling render method without specifying any render mode. "
                "Make the vector with render_mode='rgb_array'."
            )
            return None
        return reds_greens_blues(self.cartridge.signal)[self._screen()]

    def _screen(self) -> Pixels:
        if self._shown is not None:
            return self._shown
        if self._emulator is None:
            return self.cartridge.first_start.scene.screen
        return self._emulator.getScreen()

    # Saving

    def save(self) -> SavedGame:
        """All that the game needs to go on from here."""
        emulator = self._emulator
        state = self._awaiting
        if emulator is not None:
            state = emulator.cloneState(include_rng=self._repeats_in_emulator)
        newest, before, _ = self._screens if self._turns is None else self._turns.screens
        sticky = self._sticky
        return SavedGame(
            self.settings,
            state.serialize(),
            (newest.copy(), before.copy()),
            self._screen().copy(),
            self._window.stack.copy(),
            {name: getattr(self, name) for name in _COUNTERS},
            self._noops.state,
            None if sticky is None else (sticky.words.state, sticky.last),
        )

    def restore(self, saved: SavedGame) -> None:
        """Go on from where a game with the same settings was saved.

        The emulator does not save what it is about to show: in a few games (Q*bert and Tetris among
        them) the pictures of the next frames may show some of what was there before.
        """
        if saved.settings != self.settings:
            raise ValueError(f"saved with {saved.settings}, but the game has {self.settings}")
        self._restore(ale().ALEState(saved.emulator))
        self._put_screens(*saved.screens)
        self._shown = saved.shown
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
def _pressed(across: int, up: int, fires: bool) -> int:
    """The number of the action that presses this.

    >>> _pressed(0, 0, False), _pressed(-1, 1, True)
    (0, 15)
    """
    name = _UP[up] + _ACROSS[across] + "FIRE" * fires
    number: int = ale().Action[name].value if name else NOOP
    return number


def _polar_space() -> Box:
    return Box(np.array([0.0, -np.pi, 0.0], np.float32), np.array([1.0, np.pi, 1.0], np.float32))
