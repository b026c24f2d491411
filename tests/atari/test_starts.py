"""Cached start states of episodes, compared with console resets of the emulator."""

import re

import numpy as np
import pytest
from ale_py import ALEInterface, LoggerMode

from shoal._envs.atari.cartridge import Cartridge, Start, shared_cartridge
from shoal._envs.atari.games import rom_path
from shoal._envs.atari.start_states import recurrence_of
from shoal.atari import games

GENERATOR = re.compile(rb"(?:[0-9]+ ){624}[0-9]+")


def load_emulator(game):
    ALEInterface.setLoggerMode(LoggerMode.Error)
    emulator = ALEInterface()
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("random_seed", 1)
    emulator.loadROM(rom_path(game))
    return emulator


def state_without_generator(emulator):
    """Return the state of an emulator, without its generator and frame counts."""
    state = emulator.cloneState().serialize()
    return state[GENERATOR.search(state).end() : -8], emulator.getScreen().tobytes()


def play(emulator, random, frames):
    actions = emulator.getLegalActionSet()
    for _ in range(frames):
        emulator.act(actions[random.integers(len(actions))])


def assert_recurrence(game, resets):
    """Compare an emulator that is played between resets with an idle one."""
    random = np.random.default_rng(7)
    played, idle = load_emulator(game), load_emulator(game)
    idle.reset_game()
    first = state_without_generator(idle)
    played.reset_game()
    is_same = is_counted = True
    for number in range(resets):
        play(played, random, int(random.integers(0, 400 if number % 6 == 0 else 60)))
        played.reset_game()
        idle.reset_game()
        now = state_without_generator(played)
        is_same &= now == first
        is_counted &= now == state_without_generator(idle)
    recurrence = recurrence_of(game)
    assert recurrence != "same" or is_same
    assert recurrence == "none" or is_counted


def assert_restores(game, trials):
    """Compare the outputs after restoring a start state with those after a reset."""
    random = np.random.default_rng(7)
    restored, reset = load_emulator(game), load_emulator(game)
    just_loaded = reset.cloneState()
    reset.reset_game()
    start = reset.cloneState()
    actions = reset.getLegalActionSet()
    for _ in range(trials):
        play(restored, random, 400)
        restored.restoreState(start)
        # In games whose start states do not recur, a seed does this.
        reset.restoreState(just_loaded)
        reset.reset_game()
        for _ in range(60):
            action = actions[random.integers(len(actions))]
            assert restored.act(action) == reset.act(action)
            np.testing.assert_array_equal(restored.getScreen(), reset.getScreen())
            np.testing.assert_array_equal(restored.getRAM(), reset.getRAM())
            assert restored.lives() == reset.lives()


@pytest.mark.parametrize("game", ["pong", "breakout", "freeway", "ice_hockey"])
def test_recurrence(game):
    assert_recurrence(game, resets=6)


@pytest.mark.parametrize("game", ["pong", "breakout", "freeway"])
def test_restoring_start_states(game):
    assert_restores(game, trials=1)


@pytest.mark.slow
@pytest.mark.parametrize("game", games())
def test_every_game(game):
    assert_recurrence(game, resets=80)
    if recurrence_of(game) != "none":
        assert_restores(game, trials=4)


def test_start_state_cache_is_limited():
    cartridge = Cartridge("freeway", None, None)
    with cartridge.borrowed() as emulator:
        start = Start.of(emulator)
    for count in range(2, 400):
        cartridge.keep(count, start)
    assert cartridge.start(1) is cartridge.first_start
    assert cartridge.start(399) is start
    assert cartridge.start(2) is None


def test_cartridges_are_shared_in_a_process():
    first = shared_cartridge("pong", None, None)
    assert shared_cartridge("pong", None, None) is first
    assert shared_cartridge("pong", 1, None) is not first


def test_other_modes_use_console_resets():
    assert shared_cartridge("pong", 1, None).recurrence == "none"
