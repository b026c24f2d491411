"""Rendering of kernels, without pygame."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import shoal

NAMES = [
    "CartPole-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Acrobot-v1",
    "Blackjack-v1",
    "FrozenLake-v1",
    "FrozenLake8x8-v1",
    "CliffWalking-v1",
    "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3",
]


@pytest.mark.parametrize("name", NAMES)
def test_images_follow_the_state(name):
    with shoal.make(name, 5, render_mode="rgb_array") as envs:
        envs.reset(seed=[1, 1, 2, 3, 4])
        envs.action_space.seed(5)
        first = envs.render()
        assert len(first) == 5
        assert first[0].dtype == np.uint8
        assert first[0].ndim == 3
        assert np.array_equal(first[0], first[1])  # the same seed
        assert len({bytes(pixel) for pixel in first[0].reshape(-1, 3)[::37]}) > 2  # colours
        saved = envs.save()
        for _ in range(3):
            envs.step(envs.action_space.sample())
        later = envs.render()
        assert any(not np.array_equal(*pair) for pair in zip(first, later, strict=True))
        envs.restore(saved)
        for picture, again in zip(first, envs.render(), strict=True):
            assert np.array_equal(picture, again)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Blackjack-v1"])
def test_images_have_gymnasium_sizes(name):
    pytest.importorskip("pygame")
    env = gymnasium.make(name, render_mode="rgb_array")
    env.reset(seed=0)
    with shoal.make(name, 1, render_mode="rgb_array") as envs:
        envs.reset(seed=0)
        assert envs.render()[0].shape == env.render().shape
        assert envs.metadata["render_fps"] == env.metadata["render_fps"]
    env.close()


def test_classic_control_images_resemble_gymnasium():
    pytest.importorskip("pygame")
    for name in NAMES[:5]:
        env = gymnasium.make(name, render_mode="rgb_array")
        env.reset(seed=3)
        with shoal.make(name, 1, render_mode="rgb_array") as envs:
            envs.reset(seed=3)
            difference = np.abs(envs.render()[0].astype(float) - env.render().astype(float))
            assert difference.mean() < 2.0, name  # of 255
        env.close()


def test_images_of_many_slots_are_tiled():
    with shoal.make("CartPole-v1", 7, render_mode="rgb_array", workers=2) as envs:
        envs.reset(seed=0)
        tiled = envs.render_tiled()
        assert tiled.shape == (3 * 400, 3 * 600, 3)
        singles = envs.render()
        assert np.array_equal(tiled[400:800, 600:1200], singles[4])
        assert not tiled[800:, 600:].any()
        assert envs.render_tiled([2, 0], columns=2).shape == (400, 1200, 3)


def test_out_of_range_states_can_be_rendered():
    for name in NAMES[:5]:
        with shoal.make(name, 4, render_mode="rgb_array") as envs:
            envs.reset(seed=0)
            for field in envs.state.dtype.names:
                if envs.state.dtype[field] == np.float64:
                    envs.state[field] = [1e300, -1e9, np.nan, np.inf]
            assert len(envs.render()) == 4


def test_render_without_render_mode_returns_none():
    with shoal.make("CartPole-v1", 2) as envs:
        envs.reset(seed=0)
        with pytest.warns(UserWarning, match="without specifying any render mode"):
            assert envs.render() == (None, None)
        with pytest.raises(ValueError, match="render_mode='rgb_array'"):
            envs.render_tiled()
    with shoal.make("CartPole-v1", 2, render_mode="rgb_array") as envs:
        envs.reset(seed=0)
        with pytest.raises(ValueError, match="columns must be"):
            envs.render_tiled(columns=0)
        with pytest.raises(ValueError, match="slots must not be empty"):
            envs.render_tiled([])


def test_rendering_does_not_need_pygame():
    script = """
import sys
sys.modules["pygame"] = None
import shoal
envs = shoal.make("CartPole-v1", 2, render_mode="rgb_array")
envs.reset(seed=0)
print(envs.render_tiled().shape)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "(400, 1200, 3)\n"


def test_video_can_be_recorded(tmp_path):
    from shoal.vector.wrappers import RecordVideo

    envs = RecordVideo(
        shoal.make("CartPole-v1", 4, render_mode="rgb_array"), str(tmp_path), video_length=10
    )
    envs.reset(seed=0)
    for _ in range(12):
        envs.step(envs.action_space.sample())
    envs.close()
    assert list(tmp_path.glob("*.mp4"))
