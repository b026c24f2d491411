"""What the slots of a process share of a game: its program, and the states that episodes begin in.

To load a program takes an emulator about 100 ms, to reset it 4 to 11 ms, most of which is the
emulation of a second after power-on; to restore a state takes 0.1 ms. What stands in the way of
always restoring one: a few things survive a reset. :mod:`.start_states` tells for each
game which, as found by comparing.
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

__all__ = ["FIRE", "NOOP", "Cartridge", "Scene", "Start", "insert", "opening_actions"]

NOOP, FIRE = 0, 1

_KEPT_STARTS = 256

# A generator in a serialized state, by its place among the words that it has made.
_TWISTER = 624
_GENERATOR = re.compile(rb"(?:[0-9]+ ){%d}([0-9]+)" % _TWISTER)

_inserted: WeakValueDictionary[tuple[str, int | None, int | None], Cartridge] = (
    WeakValueDictionary()
)
_inserting = Lock()


@dataclass(frozen=True)
class Scene:
    """What an emulator shows and tells."""

    screen: npt.NDArray[np.uint8]
    ram: npt.NDArray[np.uint8]
    lives: int

    @classmethod
    def of(cls, emulator: ALEInterface) -> Scene:
        """What this one does. A state that was restored shows only with the next frame."""
        return cls(emulator.getScreen(), emulator.getRAM(), emulator.lives())


@dataclass(frozen=True)
class Start:
    """A state that an episode begins in, with its scene: restoring does not redraw a screen."""

    state: ALEState
    scene: Scene

    @classmethod
    def of(cls, emulator: ALEInterface) -> Start:
        """What this emulator has arrived at, by a reset or by frames."""
        return cls(emulator.cloneState(), Scene.of(emulator))


class Cartridge:
    """A game in one of its modes: makes emulators, and keeps the starts of episodes.

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
        self._borrowing = Lock()
        self._kept: OrderedDict[Hashable, Start] = OrderedDict()
        self._keeping = Lock()

    def emulator(self, repeat_action_probability: float, seed: int) -> ALEInterface:
        """A new emulator with this cartridge."""
        emulator = self._loaded(repeat_action_probability, seed)
        self._set_switches(emulator)
        return emulator

    @contextmanager
    def borrowed(self) -> Iterator[ALEInterface]:
        """The cartridge's own emulator, in whatever state, for as long as nobody else wants it."""
        with self._borrowing:
            yield self._emulator

    def start(self, count: int) -> Start | None:
        """The state after so many resets, if it is known; the first one always is."""
        return self.first_start if count == 1 else self._find(count)

    def keep(self, key: Hashable, start: Start) -> None:
        """Keep the state after so many resets, and forget one that was not asked for lately."""
        with self._keeping:
            self._kept[key] = start
            if len(self._kept) > _KEPT_STARTS:
                self._kept.popitem(last=False)

    def _find(self, key: Hashable) -> Start | None:
        with self._keeping:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def opening(self, noops: int, fires: bool) -> Start:
        """The state after the first reset and so many frames without a player."""
        if not noops and not fires:
            return self.first_start
        found = self._find((noops, fires))
        if found is None:
            with self.borrowed() as emulator:
                emulator.restoreState(self.first_start.state)
                for action in opening_actions(noops, fires):
                    emulator.act(action)
                    if emulator.game_over():
                        emulator.reset_game()
                found = Start.of(emulator)
            self.keep((noops, fires), found)
        return found

    def _loaded(self, repeat_action_probability: float = 0.0, seed: int = 1) -> ALEInterface:
        _be_quiet()
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
                f"the colours of {self.game} are not those of {self.signal} as Shoal knows them; "
                f"it was made for ale-py 0.12, this is {ale().__version__}"
            )


@cache
def _be_quiet() -> None:
    """Let the emulator tell of errors alone, unless the user has it tell more later on."""
    ale().ALEInterface.setLoggerMode(ale().LoggerMode.Error)


def _words_drawn(emulator: ALEInterface) -> int:
    """How many words an emulator has drawn from its generator since it was loaded.

    Hardly any: there are two games that draw some in every reset.
    """
    state = emulator.cloneState(include_rng=True).serialize()
    place = int(_GENERATOR.findall(state)[-1])
    return place % _TWISTER


def opening_actions(noops: int, fires: bool) -> list[int]:
    """What is pressed before a player takes over, frame by frame."""
    return [FIRE] * fires + [NOOP] * noops


def insert(game: str, mode: int | None, difficulty: int | None) -> Cartridge:
    """The cartridge that this process has of a game; a new one unless some slot has it already."""
    key = game, mode, difficulty
    with _inserting:
        cartridge = _inserted.get(key)
        if cartridge is None:
            cartridge = _inserted[key] = Cartridge(game, mode, difficulty)
        return cartridge
