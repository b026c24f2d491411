"""Invalid input raises an error before anything is created or stepped."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import shoal
from shoal.atari import AtariVectorEnv, games
from shoal.errors import (
    ActionTypeError,
    InvalidActionError,
    InvalidSettingError,
    ResetMaskError,
    SeedError,
    SlotNotResetError,
    UnknownGameError,
)


@pytest.fixture(scope="module")
def envs():
    with AtariVectorEnv("pong", 3, num_threads=1) as made:
        made.reset(seed=0)
        yield made


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("braekout", "did you mean 'breakout'"),
        ("ALE/Pnog-v5", "did you mean 'pong'"),
        ("zzzz", r"shoal.atari.games\(\)"),
        ("combat", "no single-player mode"),
    ],
)
def test_unknown_games(name, message):
    with pytest.raises(UnknownGameError, match=message):
        AtariVectorEnv(name, 2)
    if name.startswith("ALE/"):
        with pytest.raises(UnknownGameError, match=message):
            shoal.make(name, 2)
    with pytest.raises(AssertionError):  # the type that ale-py raises
        AtariVectorEnv(name, 2)


def test_all_games_are_listed():
    assert len(games()) > 100
    assert "ms_pacman" in games()
    with pytest.raises(TypeError, match="must be a string"):
        AtariVectorEnv([3], 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"img_height": 0}, "img_height must be an integer from 1 to 10000, got 0"),
        ({"img_width": -84}, "img_width"),
        ({"img_width": 84.5}, "img_width"),
        ({"stack_num": 0}, "stack_num"),
        ({"frameskip": 0}, "frameskip"),
        ({"frameskip": (2, 5)}, "frameskip"),
        ({"noop_max": -1}, "noop_max must be an integer from 0"),
        ({"repeat_action_probability": 1.5}, "repeat_action_probability must be a number from 0"),
        ({"repeat_action_probability": "often"}, "repeat_action_probability"),
        ({"max_num_frames_per_episode": 0}, "max_num_frames_per_episode"),
        ({"batch_size": 5}, "batch_size is 5, but there are 2 slots"),
        ({"batch_size": -1}, "batch_size"),
        ({"num_threads": -1}, "num_threads"),
        ({"thread_affinity_offset": -2}, "thread_affinity_offset"),
        ({"num_envs": 0}, "num_envs must be a positive integer, got 0"),
        ({"num_envs": True}, "num_envs"),
        ({"mode": [0, 1, 2]}, "3 values of mode for 2 slots"),
        ({"mode": 99}, r"pong has no mode 99, only \[0, 1\]"),
        ({"difficulty": 7}, r"no difficulty 7, only \[0, 1, 2, 3\]"),
        ({"obs_type": "sound"}, "obs_type must be one of"),
        ({"padding": "edge"}, "padding"),
        ({"maxpool": "False"}, "maxpool must be True or False"),
        ({"noop_max": 10**10}, "noop_max must be an integer from 0 to 10000"),
        ({"frameskip": 2**31}, "frameskip"),
        ({"max_num_frames_per_episode": 2**70}, "max_num_frames_per_episode"),
        ({"mode": 1.0}, "mode"),
        ({"on_crash": "explode"}, "on_crash must be one of"),
        ({"thread_affinity_offset": 999}, "thread_affinity_offset is 999"),
        ({"game": ["pong", "skiing"]}, r"18 \(pong\), 9 \(skiing\)"),
        ({"render_mode": "human"}, "render_mode"),
        ({"autoreset_mode": "Never"}, "Never"),
        ({"game": ["pong"] * 3}, "num_envs is 2, but there are 3 games"),
        ({"game": [], "num_envs": None}, "at least one game"),
    ],
    ids=str,
)
def test_invalid_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        AtariVectorEnv(**{"game": "pong", "num_envs": 2, "num_threads": 1, **settings})


def test_errors_have_the_types_of_ale_py():
    with pytest.raises(gymnasium.error.Error):
        AtariVectorEnv("pong", 2, frameskip=0)
    with pytest.raises(InvalidSettingError):
        shoal.make("ALE/Pong-v5", 2, img_height=0)


def test_options_that_games_do_not_support():
    with pytest.raises(ValueError, match="requires a kernel"):
        shoal.make("ALE/Pong-v5", 2, seeding="counter")
    with pytest.raises(ValueError, match="batch_size is 8, but there are 2 slots"):
        shoal.make("ALE/Pong-v5", 2, batch_size=8)


@pytest.mark.parametrize("radius", [np.nan, 2.0, -0.5])
def test_invalid_continuous_actions(radius):
    with AtariVectorEnv("pong", 2, num_threads=1, continuous=True) as envs:
        envs.reset(seed=0)
        actions = np.array([[0.5, 0.0, 0.0], [radius, 0.0, 0.0]])
        with pytest.raises(InvalidActionError, match="action 1"):
            envs.step(actions)
        actions[1] = 0.5
        envs.step(actions)


def test_unknown_settings():
    with pytest.raises(TypeError, match="no setting 'img_size', only"):
        shoal.make("ALE/Pong-v5", 2, img_size=84)
    with pytest.raises(TypeError, match="two names of one setting"):
        shoal.make("ALE/Pong-v5", 2, frame_skip=2, frameskip=2)


@pytest.mark.parametrize(
    ("actions", "error"),
    [
        (np.array([0, 6, 0]), InvalidActionError),
        (np.array([0, -1, 0]), InvalidActionError),
        (np.array([0, 0]), InvalidActionError),
        (np.zeros((3, 1), int), InvalidActionError),
        (np.zeros(3), ActionTypeError),
        (None, (ActionTypeError, InvalidActionError)),
        (["up", "up", "up"], (ActionTypeError, InvalidActionError)),
    ],
    ids=repr,
)
def test_invalid_actions(envs, actions, error):
    before = envs.step(np.zeros(3, int))[4]["frame_number"]
    with pytest.raises(error):
        envs.step(actions)
    with pytest.raises(error):
        envs.send(actions)
    np.testing.assert_array_equal(envs.step([0, 0, 0])[4]["frame_number"], before + 4)


def test_error_names_the_slot_of_an_invalid_action(envs):
    with pytest.raises(InvalidActionError, match="slot 1"):
        envs.step(np.array([0, 6, 0]))


@pytest.mark.parametrize(
    "seed", [-1, 1.5, "one", [1, 2], [1, 2, -3], np.array([[1, 2, 3]]), True], ids=repr
)
def test_invalid_seeds(envs, seed):
    with pytest.raises(SeedError):
        envs.reset(seed=seed)


@pytest.mark.parametrize(
    "mask", [[True, False, True], np.array([1, 0, 1]), np.array([True, False])], ids=repr
)
def test_invalid_reset_masks(envs, mask):
    with pytest.raises(ResetMaskError, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})


def test_seed_for_each_slot_that_is_reset(envs):
    with pytest.raises(SeedError):
        envs.reset(seed=[1, 2, 3], options={"reset_mask": np.array([True, False, True])})


def test_calls_before_the_first_reset_raise():
    with AtariVectorEnv("pong", 2, num_threads=1) as envs:
        for call in (envs.step, envs.send):
            with pytest.raises(SlotNotResetError, match="have not been reset"):
                call(np.zeros(2, int))
        with pytest.raises(SlotNotResetError, match="slot 1 has never been reset"):
            envs.reset(options={"reset_mask": np.array([True, False])})
        with pytest.raises(RuntimeError):  # the type that ale-py raises
            envs.step(np.zeros(2, int))
    with (
        shoal.make("ALE/Pong-v5", 2, backend="inline") as envs,
        pytest.raises(gymnasium.error.ResetNeeded),
    ):
        envs.step(np.zeros(2, int))


def test_reset_masks_need_batches_of_all_slots():
    with AtariVectorEnv("pong", 3, batch_size=2) as envs:
        envs.reset(seed=0)
        with pytest.raises(ResetMaskError, match="batches of all 3 slots"):
            envs.reset(options={"reset_mask": np.array([True, False, True])})


def test_missing_ale_py():
    code = (
        "import sys; sys.modules['ale_py'] = None\n"
        "import shoal, shoal.atari\n"
        "for make in (lambda: shoal.atari.AtariVectorEnv('pong', 2),\n"
        "             lambda: shoal.make('ALE/Pong-v5', 2), shoal.atari.games):\n"
        "    try:\n"
        "        make()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.count('pip install "shoal[atari]"') == 3, done.stderr
