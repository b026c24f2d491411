"""What the slots of a process share of a game: its program, and the states that episodes begin in.

To load a program takes an emulator about 100 ms, to reset it 4 to 11 ms, most of which is the
emulation of a second after power-on; to restore a state takes 0.1 ms. What stands in the way of
always restoring one: a few things survive a reset. :mod:`shoal.envs.atari.starts` tells for each
game which, as found by comparing.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from shoal.envs.atari.games import ale, rom_path
from shoal.envs.atari.palettes import Signal, reds_greens_blues, signal_of
from shoal.envs.atari.starts import Recurrence, recurrence_of

if TYPE_CHECKING:
    from ale_py import ALEInterface, ALEState

__all__ = ["FIRE", "NOOP", "Cartridge", "Start", "insert", "opening_actions"]

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
class Start:
    """A state that an episode begins in, with what it shows: restoring does not redraw a screen."""

    state: ALEState
    screen: npt.NDArray[np.uint8]
    ram: npt.NDArray[np.uint8]
    lives: int

    @classmethod
    def of(cls, emulator: ALEInterface) -> Start:
        """What this emulator has arrived at."""
        return cls(emulator.cloneState(), emulator.getScreen(), emulator.getRAM(), emulator.lives())


class Cartridge:
    """A game in one of its modes: makes emulators, and keeps the starts of episodes.

    Raises:
        ValueError: The game has no such mode or difficulty.
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
        self.words_to_load = _words_drawn(emulator)
        emulator.reset_game()
        self.words_to_reset = _words_drawn(emulator) - self.words_to_load
        self.first_start = Start.of(emulator)
        self.signal: Signal = signal_of(self.screen_size[0])
        self._check_colours(emulator)
        as_delivered = mode is None and difficulty is None
        self.recurrence: Recurrence = recurrence_of(game) if as_delivered else "none"
        self._emulator = emulator
        self._borrowing = Lock()
        self._counted: OrderedDict[int, Start] = OrderedDict()
        self._openings: dict[tuple[int, bool], Start] = {}

    def emulator(self) -> ALEInterface:
        """A new emulator with this cartridge."""
        emulator = self._loaded()
        self._set_switches(emulator)
        return emulator

    @contextmanager
    def borrowed(self) -> Iterator[ALEInterface]:
        """The cartridge's own emulator, in whatever state, for as long as nobody else wants it."""
        with self._borrowing:
            yield self._emulator

    def start(self, count: int) -> Start | None:
        """The state after so many resets, if it is known; the first one always is."""
        if count == 1:
            return self.first_start
        found = self._counted.get(count)
        if found is not None:
            self._counted.move_to_end(count)
        return found

    def keep(self, count: int, start: Start) -> None:
        """Keep a state after so many resets, and forget one that nobody has asked for lately."""
        self._counted[count] = start
        if len(self._counted) > _KEPT_STARTS:
            self._counted.popitem(last=False)

    def opening(self, noops: int, fires: bool) -> Start:
        """The state after the first reset and so many frames without a player."""
        found = self._openings.get((noops, fires))
        if found is None:
            with self.borrowed() as emulator:
                emulator.restoreState(self.first_start.state)
                for action in opening_actions(noops, fires):
                    emulator.act(action)
                    if emulator.game_over():
                        emulator.reset_game()
                found = Start.of(emulator) if noops or fires else self.first_start
            self._openings[noops, fires] = found
        return found

    def _loaded(self) -> ALEInterface:
        interface = ale().ALEInterface
        interface.setLoggerMode(ale().LoggerMode.Error)
        emulator: ALEInterface = interface()
        # It never repeats actions by itself: see StickyActions.
        emulator.setFloat("repeat_action_probability", 0.0)
        emulator.setInt("random_seed", 1)
        emulator.loadROM(rom_path(self.game))
        return emulator

    def _set_switches(self, emulator: ALEInterface) -> None:
        if self._mode is not None:
            emulator.setMode(self._mode)
        if self._difficulty is not None:
            emulator.setDifficulty(self._difficulty)

    def _check(self, value: int | None, what: str, available: Any) -> None:
        if value is not None and value not in available:
            raise ValueError(f"{self.game} has no {what} {value}, only {sorted(available)}")

    def _check_colours(self, emulator: ALEInterface) -> None:
        shown = reds_greens_blues(self.signal)[self.first_start.screen]
        if not np.array_equal(shown, emulator.getScreenRGB()):
            raise RuntimeError(
                f"the colours of {self.game} are not those of {self.signal} as Shoal knows them; "
                f"it was made for ale-py 0.12, this is {ale().__version__}"
            )


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
