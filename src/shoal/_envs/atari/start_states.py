"""Which games start their episodes in reproducible states.

A console reset does not clear everything: a timer keeps its value, which is set randomly by a
generator that cannot be seeded, and in some games memory survives. Each game was classified by
comparing the complete emulator state after 80 resets between an emulator that played an episode
before each reset and one that did not. ``tests/atari/test_starts.py`` repeats this comparison.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["Recurrence", "recurrence_of"]

Recurrence = Literal["same", "counted", "none"]
"""How start states recur.

- ``"same"``: every episode starts in the same state.
- ``"counted"``: the n-th reset after a seed always leads to the same state.
- ``"none"``: the start state is unknown until the console is reset. Also used for games whose
  screens show old content for a few frames after a restore, and for Tic-Tac-Toe 3D, which differed
  in a comparison with ale-py.
"""

_SAME = """
air_raid asterix atlantis atlantis2 basic_math battle_zone blackjack bowling breakout carnival
casino centipede darkchambers defender donkey_kong double_dunk et flag_capture frogger gopher
jamesbond journey_escape keystone_kapers king_kong klax lost_luggage mr_do ms_pacman name_this_game
othello pacman pong road_runner robotank skiing space_invaders turmoil
video_checkers video_chess video_pinball wizard_of_wor word_zapper
"""

_COUNTED = """
adventure alien assault asteroids backgammon bank_heist beam_rider berzerk boxing chopper_command
crazy_climber demon_attack earthworld elevator_action enduro entombed fishing_derby freeway
frostbite galaxian gravitar hero human_cannonball kaboom kangaroo krull laser_gates mario_bros
miniature_golf montezuma_revenge phoenix pitfall pitfall2 private_eye riverraid seaquest solaris
star_gunner superman tennis tutankham up_n_down venture video_cube zaxxon
"""

_RECURRENCES: dict[str, Recurrence] = {
    **dict.fromkeys(_COUNTED.split(), "counted"),
    **dict.fromkeys(_SAME.split(), "same"),
}


def recurrence_of(game: str) -> Recurrence:
    """Return how the start states of a game recur in its default mode.

    >>> recurrence_of("pong"), recurrence_of("yars_revenge")
    ('same', 'none')
    """
    return _RECURRENCES.get(game, "none")
