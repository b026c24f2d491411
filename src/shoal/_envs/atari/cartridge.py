"""Data that the slots of a process share for one game: the ROM and cached start states.

Loading a ROM takes an emulator about 100 ms; a reset takes 4 to 11 ms, because it emulates the
second after power-on; restoring a state takes 0.1 ms. Resets are therefore replaced by restoring a
cached state where possible. Some games carry state over a reset; :mod:`.start_states` lists them.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from shoal._envs.atari.games import ale, rom_path
from shoal._envs.atari.palettes import Signal, reds_greens_blues, signal_of
from shoal._envs.atari.start_states import Recurrence, recurrence_of
from shoal.errors import InvalidSettingError

if TYPE_CHECKING:
    from ale_py import ALEInterface, ALEState

__all__ = ["FIRE", "NOOP", "Cartridge", "Scene", "Start", "opening_actions", "shared_cartridge"]

NOOP, FIRE = 0, 1

_CACHED_STARTS = 256

# The position of the Mersenne Twister in a serialized emulator state, after its 624 state words.
_TWISTER_WORDS = 624
_TWISTER_POSITION = re.compile(rb"(?:[0-9]+ ){%d}([0-9]+)" % _TWISTER_WORDS)

_inserted: WeakValueDictionary[tuple[str, int | None, int | None], Cartridge] = (
    WeakValueDictionary()
)
_insert_lock = Lock()


@dataclass(frozen=True)
class Scene:
    """The outputs of an emulator: screen, RAM and lives."""

    screen: npt.NDArray[np.uint8]
    ram: npt.NDArray[np.uint8]
    lives: int

    @classmethod
    def of(cls, emulator: ALEInterface) -> Scene:
        """Read the outputs. After a restore, the screen is stale until the next frame."""
        return cls(emulator.getScreen(), emulator.getRAM(), emulator.lives())


@dataclass(frozen=True)
class Start:
    """A start state of an episode and its outputs, because a restore does not redraw the screen."""

    state: ALEState
    scene: Scene

    @classmethod
    def of(cls, emulator: ALEInterface) -> Start:
        """Capture the current state of an emulator."""
        return cls(emulator.cloneState(), Scene.of(emulator))


class Cartridge:
    """A game in one mode: creates emulators and caches start states.

    Raises:
        InvalidSettingError: The game has no such mode or difficulty.
    """

    def __init__(self, game: str, mode: int | None, difficulty: int | None) -> None:
        self.game = game
        self._mode, self._difficulty = mode, difficulty
        emulator = self._loaded()
        self._check(mode, "mode", emulator.getAvailableModes())
        self._check(difficulty, "difficulty", emulator.getAvailableDifficulties())
        self._set_switches(emulator)
        self.minimal_actions = [action.value for action in emulator.getMinimalActionSet()]
        self.legal_actions = [action.value for action in emulator.getLegalActionSet()]
        self.screen_size: tuple[int, int] = emulator.getScreenDims()
        self.ram_size: int = emulator.getRAMSize()
        self.just_loaded: ALEState = emulator.cloneState()
        words_drawn = _words_drawn(emulator)
        emulator.reset_game()
        self.reset_presses_buttons = _words_drawn(emulator) > words_drawn
        self.first_start = Start.of(emulator)
        self.signal: Signal = signal_of(self.screen_size[0])
        self._check_colours(emulator)
        as_delivered = mode is None and difficulty is None
        self.recurrence: Recurrence = recurrence_of(game) if as_delivered else "none"
        self._emulator = emulator
        self._emulator_lock = Lock()
        self._cached: OrderedDict[Hashable, Start] = OrderedDict()
        self._cache_lock = Lock()

    def emulator(self, repeat_action_probability: float, seed: int) -> ALEInterface:
        """Create an emulator for this game."""
        emulator = self._loaded(repeat_action_probability, seed)
        self._set_switches(emulator)
        return emulator

    @contextmanager
    def borrowed(self) -> Iterator[ALEInterface]:
        """Lock and return the shared emulator, whose state is arbitrary."""
        with self._emulator_lock:
            yield self._emulator

    def start(self, count: int) -> Start | None:
        """Return the cached state after ``count`` resets, or None; the first is always cached."""
        return self.first_start if count == 1 else self._find(count)

    def keep(self, key: Hashable, start: Start) -> None:
        """Cache a start state; evict the least recently used one if the cache is full."""
        with self._cache_lock:
            self._cached[key] = start
            if len(self._cached) > _CACHED_STARTS:
                self._cached.popitem(last=False)

    def _find(self, key: Hashable) -> Start | None:
        with self._cache_lock:
            start = self._cached.get(key)
            if start is not None:
                self._cached.move_to_end(key)
            return start

    def opening(self, noops: int, fires: bool) -> Start:
        """Return the state after the first reset and the opening frames."""
        if not noops and not fires:
            return self.first_start
        start = self._find((noops, fires))
        if start is None:
            with self.borrowed() as emulator:
                emulator.restoreState(self.first_start.state)
                for action in opening_actions(noops, fires):
                    emulator.act(action)
                    if emulator.game_over():
                        emulator.reset_game()
                start = Start.of(emulator)
            self.keep((noops, fires), start)
        return start

    def _loaded(self, repeat_action_probability: float = 0.0, seed: int = 1) -> ALEInterface:
        _silence_logger()
        emulator: ALEInterface = ale().ALEInterface()
        emulator.setFloat("repeat_action_probability", repeat_action_probability)
        emulator.setInt("random_seed", seed)
        emulator.loadROM(rom_path(self.game))
        return emulator

    def _set_switches(self, emulator: ALEInterface) -> None:
        if self._mode is not None:
            emulator.setMode(self._mode)
        if self._difficulty is not None:
            emulator.setDifficulty(self._difficulty)

    def _check(self, value: int | None, what: str, available: Any) -> None:
        if value is not None and value not in available:
            raise InvalidSettingError(
                f"{self.game} has no {what} {value}, only {sorted(available)}"
            )

    def _check_colours(self, emulator: ALEInterface) -> None:
        shown = reds_greens_blues(self.signal)[self.first_start.scene.screen]
        if not np.array_equal(shown, emulator.getScreenRGB()):
            raise RuntimeError(
                f"the colours of {self.game} differ from the {self.signal} palette of ale-py 0.12, "
                f"which Shoal supports; the installed version is {ale().__version__}"
            )


@cache
def _silence_logger() -> None:
    """Set the emulator's log level to errors, once, so that the user can change it later."""
    ale().ALEInterface.setLoggerMode(ale().LoggerMode.Error)


def _words_drawn(emulator: ALEInterface) -> int:
    """Return how many random words an emulator has drawn since its ROM was loaded.

    Few enough for the position to be unambiguous: two games draw some in every reset.
    """
    state = emulator.cloneState(include_rng=True).serialize()
    position = int(_TWISTER_POSITION.findall(state)[-1])
    return position % _TWISTER_WORDS


def opening_actions(noops: int, fires: bool) -> list[int]:
    """Return the actions of the frames before the first step."""
    return [FIRE] * fires + [NOOP] * noops


def shared_cartridge(game: str, mode: int | None, difficulty: int | None) -> Cartridge:
    """Return the process-wide cartridge of a game; create it if no slot uses it."""
    key = game, mode, difficulty
    with _insert_lock:
        cartridge = _inserted.get(key)
        if cartridge is None:
            cartridge = _inserted[key] = Cartridge(game, mode, difficulty)
        return cartridge
