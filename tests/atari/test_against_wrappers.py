"""Shoal's Atari vectors equal Gymnasium's wrappers around ale-py's environment."""

import ale_py
import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from shoal.atari import AtariVectorEnv

gymnasium.register_envs(ale_py)

GAMES = [
    *("Breakout", "Pong", "SpaceInvaders", "Seaquest", "Qbert", "MsPacman", "Boxing", "Freeway"),
    *("Asterix", "Enduro", "MontezumaRevenge", "Riverraid", "Tetris"),
]


def reference(game, frameskip=4, size=84, grayscale=True, lives=False, stack=4, limit=None):
    env = gymnasium.make(
        f"ALE/{game}-v5",
        frameskip=1,
        repeat_action_probability=0,
        max_num_frames_per_episode=limit or 108_000,
    )
    env = AtariPreprocessing(
        env,
        noop_max=0,
        frame_skip=frameskip,
        screen_size=size,
        terminal_on_life_loss=lives,
        grayscale_obs=grayscale,
    )
    return FrameStackObservation(env, stack)


def assert_equal_to_wrappers(game, steps, seed=0, frameskip=4, **settings):
    other = reference(game, frameskip, **settings)
    size = settings.get("size", 84)
    own = AtariVectorEnv(
        game,
        1,
        num_threads=1,
        noop_max=0,
        use_fire_reset=False,
        reward_clipping=False,
        padding="reset",
        frameskip=frameskip,
        img_height=size,
        img_width=size,
        grayscale=settings.get("grayscale", True),
        episodic_life=settings.get("lives", False),
        stack_num=settings.get("stack", 4),
        max_num_frames_per_episode=settings.get("limit") or 108_000,
    )
    random = np.random.default_rng(seed)
    expected, info = other.reset(seed=seed)
    got, infos = own.reset(seed=seed)
    ended = False
    for step in range(steps):
        np.testing.assert_array_equal(got[0], expected, err_msg=f"step {step}")
        counts = {key: infos[key][0] for key in ("lives", "frame_number", "episode_frame_number")}
        assert counts == {key: info[key] for key in counts}, step
        action = random.integers(own.single_action_space.n)
        got, rewards, terminations, truncations, infos = own.step(np.array([action]))
        if ended:
            expected, info = other.reset()
            ended = False
        else:
            expected, reward, terminated, truncated, info = other.step(action)
            assert (rewards[0], terminations[0], truncations[0]) == (reward, terminated, truncated)
            ended = terminated or truncated
    own.close()
    other.close()


@pytest.mark.parametrize("game", GAMES[::2])
def test_games(game):
    assert_equal_to_wrappers(game, 80, limit=150)


@pytest.mark.parametrize(
    "settings",
    [
        {"grayscale": False, "size": 64},
        {"stack": 1, "frameskip": 2},
        {"lives": True, "frameskip": 4},
        {"frameskip": 1, "size": 96},
    ],
    ids=str,
)
def test_settings(settings):
    assert_equal_to_wrappers("Breakout", 150, limit=400, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_many_steps(game):
    assert_equal_to_wrappers(game, 20_000, seed=1)
