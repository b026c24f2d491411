"""How the states recur that the episodes of a game begin in.

A reset of the console leaves some things as they were: a timer that is set by chance, from a
generator that no seed reaches, and in some games memory. Which game takes notice of which was found
out by comparing the whole state of the emulator after 80 resets, between which one emulator was
played and another was not; ``tests/atari/test_starts.py`` does it again.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["Recurrence", "recurrence_of"]

Recurrence = Literal["same", "counted", "none"]
"""``"same"``: every episode begins in the same state. ``"counted"``: the n-th reset after a seed
leads to the same state, whatever was played. ``"none"``: only a real reset tells. That is also said
of games whose pictures, for a few frames after a state was restored, show what was there before,
and of one (Tic-Tac-Toe 3D) that differed in a comparison with ale-py."""

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
    """How the starts of a game recur, in the mode that it is delivered in.

    >>> recurrence_of("pong"), recurrence_of("yars_revenge")
    ('same', 'none')
    """
    return _RECURRENCES.get(game, "none")
