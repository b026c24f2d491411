"""The same seeds and actions through ale-py's vector environment and ours: the same results.

``shoal.atari`` is compared with the whole of what ale-py returns. Two things are left out: Double
Dunk with repeated actions, where ale-py's emulator repeats some while it resets, and the continuous
actions of Lost Luggage and Skiing, which ale-py takes for the numbers of others.
"""

import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv as Reference
from gymnasium.vector import AutoresetMode

from shoal.atari import AtariVectorEnv, games
from tests.atari.comparing import assert_same_infos, play_both

# Together they use every setting, end episodes in every way, and stop in the midst of a step.
SETTINGS = {
    "as they are": {},
    "nothing at the start": {"noop_max": 0, "use_fire_reset": False},
    "nothing at the start, sticky": {
        "noop_max": 0,
        "use_fire_reset": False,
        "repeat_action_probability": 0.25,
        "max_num_frames_per_episode": 150,
    },
    "sticky, lives": {"repeat_action_probability": 0.25, "episodic_life": True},
    "sticky, in colour": {
        "repeat_action_probability": 0.1,
        "full_action_space": True,
        "use_fire_reset": False,
        "grayscale": False,
    },
    "every frame": {
        "frameskip": 1,
        "max_num_frames_per_episode": 133,
        "noop_max": 5,
        "stack_num": 1,
        "img_height": 64,
        "img_width": 64,
    },
    "no merging": {
        "frameskip": 3,
        "maxpool": False,
        "max_num_frames_per_episode": 100,
        "reward_clipping": False,
    },
    "cut short": {"frameskip": 5, "max_num_frames_per_episode": 104, "grayscale": False},
    "continuous": {"continuous": True, "repeat_action_probability": 0.25},
    "lives as information": {"life_loss_info": True, "img_height": 210, "img_width": 160},
    "larger": {"img_height": 256, "img_width": 180, "stack_num": 2},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_settings(settings):
    play_both("breakout", 150, **settings)


# Two whose starts recur in different ways, and one whose starts do not.
@pytest.mark.parametrize("game", ["ms_pacman", "alien", "amidar"])
@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_starts_without_an_opening(game, sticky):
    ends = play_both(
        game,
        100,
        noop_max=0,
        use_fire_reset=False,
        max_num_frames_per_episode=60,
        repeat_action_probability=sticky,
    )
    assert ends > 4


def test_lives_as_information_in_the_same_step():
    play_both(
        "breakout",
        200,
        num_envs=3,
        autoreset_mode="SameStep",
        life_loss_info=True,
        max_num_frames_per_episode=500,
    )


# One of each kind of start, the two that draw numbers in a reset, and other sizes of screens.
@pytest.mark.parametrize("game", ["alien", "qbert", "berzerk", "air_raid", "yars_revenge"])
def test_games(game):
    ends = play_both(
        game, 120, max_num_frames_per_episode=100, repeat_action_probability=0.25, noop_max=8
    )
    assert ends > 3


@pytest.mark.parametrize(
    ("mode", "num_threads"), [(AutoresetMode.NEXT_STEP, 3), (AutoresetMode.SAME_STEP, 1)]
)
def test_vectors(mode, num_threads):
    ends = play_both(
        "breakout",
        100,
        num_envs=5,
        num_threads=num_threads,
        autoreset_mode=mode,
        episodic_life=True,
        max_num_frames_per_episode=300,
    )
    assert ends > 20


def test_masked_resets():
    own, other = AtariVectorEnv("pong", 4, num_threads=1), Reference("pong", 4)
    own.reset(seed=1)
    other.reset(seed=1)
    actions = np.array([2, 3, 2, 3])
    for mask, seed in (
        ([True, False, True, False], 9),
        ([False, True, True, True], np.array([4, 5, 6])),
        ([False, False, False, False], None),
        ([True, True, True, True], 2),
    ):
        for _ in range(3):
            own.step(actions)
            other.step(actions)
        options = {"reset_mask": np.array(mask)}
        (got, infos) = own.reset(seed=seed, options=options)
        (expected, other_infos) = other.reset(seed=seed, options=options)
        np.testing.assert_array_equal(got, expected)
        assert_same_infos(infos, other_infos)
    own.close()
    other.close()


@pytest.mark.slow
@pytest.mark.parametrize("game", games())
def test_every_game(game):
    for name, settings in SETTINGS.items():
        if game == "double_dunk" and "repeat_action_probability" in settings:
            continue
        if game in ("lost_luggage", "skiing") and "continuous" in settings:
            continue
        try:
            play_both(game, 600, **settings)
        except AssertionError as error:
            error.add_note(name)
            raise
