"""Rendering, windows and the keyboard."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import shoal
from shoal._envs.hockey.human_player import play
from shoal.hockey import HockeyEnv, HumanOpponent

PLAYERS = [(235, 98, 53), (93, 158, 199)]


@pytest.fixture
def pygame(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    return pytest.importorskip("pygame")


@pytest.fixture
def env():
    made = HockeyEnv()
    made.reset(seed=0)
    yield made
    made.close()


def at(image, x, y):
    """Return the colour at a position in metres from the centre of the rink."""
    return tuple(image[round(240 - 60 * y), round(300 + 60 * x)].tolist())


def test_colours_of_the_rink(env):
    image = env.render("rgb_array")
    assert (image.shape, image.dtype) == ((480, 600, 3), np.uint8)
    assert at(image, -3.1, 0) == PLAYERS[0]
    assert at(image, 3.1, 0) == PLAYERS[1]
    assert at(image, 0, 3.5) == (0, 0, 0)
    assert at(image, -4.2, 0) == (239, 203, 138)
    assert at(image, 100 / 60, 0) == (204, 204, 204)
    assert at(image, 1, 2) == (255, 255, 255)
    seen = env.obs_agent_two()
    seen[12:16] = (1, 2, 0, 0)
    env.set_state(seen)
    assert at(env.render("rgb_array"), 1, 2) != (255, 255, 255)


def test_edges_are_antialiased(env):
    colours = {tuple(pixel) for pixel in env.render("rgb_array").reshape(-1, 3).tolist()}
    assert len(colours) > 40


def test_rackets_turn(env):
    env.set_state(np.zeros(18))
    straight = env.render("rgb_array")
    turned = np.zeros(18)
    turned[2] = 0.8
    env.set_state(turned)
    assert not np.array_equal(env.render("rgb_array"), straight)


def test_render_tiled():
    with shoal.make("shoal/HockeyOne-v0", 5, render_mode="rgb_array") as envs:
        envs.reset(seed=0)
        mosaic = envs.render_tiled(columns=3)
        assert mosaic.shape == (2 * 480, 3 * 600, 3)
        assert np.array_equal(mosaic[480:, :600], envs.render()[3])


def test_window(pygame):
    env = gymnasium.make("shoal/HockeyOne-v0", render_mode="human")
    env.reset(seed=0)
    env.step(env.action_space.sample())
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    assert np.array_equal(shown, env.unwrapped.draw_image())
    env.close()
    assert not pygame.display.get_init()
    env.close()


def test_invalid_render_modes(env):
    with pytest.raises(ValueError, match="render mode must be 'human' or 'rgb_array', got 'ansi'"):
        env.render("ansi")
    with pytest.raises(ValueError, match="render_mode must be"):
        HockeyEnv(render_mode="ansi")


def test_window_needs_pygame():
    code = (
        "import sys; sys.modules['pygame'] = None\n"
        "from shoal.hockey import HockeyEnv\n"
        "env = HockeyEnv(); env.reset(); env.render('rgb_array')\n"
        "try: env.render()\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == (
        'DependencyNotInstalled pygame is not installed: pip install "shoal[human]"\n'
    )


def test_window_needs_a_display(pygame, monkeypatch, env):
    pygame.display.init()
    monkeypatch.delenv("SDL_VIDEODRIVER")
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "offscreen")
    with pytest.raises(RuntimeError, match="there is no display"):
        env.render()


def test_policy_must_return_four_numbers(pygame, env):
    with pytest.raises(ValueError, match=r"policy must return 4 numbers, got .* shape \(2,\)"):
        play(env, lambda _: [0.0, 0.0], max_steps=1)


# SIGINT must have its default handler, even if the parent process ignores it.
RESTORED = (
    "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "sys.argv = ['shoal', 'play', 'hockey']"
)


class Keys(dict):
    def __missing__(self, key):
        return False


def press(pygame, monkeypatch, *names):
    pressed = Keys({pygame.key.key_code(name): True for name in names})
    monkeypatch.setattr(pygame.key, "get_pressed", lambda: pressed)


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        ([], [0, 0, 0, 0]),
        (["left"], [-1, 0, 0, 0]),
        (["right", "up"], [1, 1, 0, 0]),
        (["down", "w", "space"], [0, -1, -1, 1]),
        (["s"], [0, 0, 1, 0]),
        (["left", "right"], [0, 0, 0, 0]),
    ],
)
def test_keys(pygame, monkeypatch, env, names, numbers):
    assert HumanOpponent(env).act().tolist() == [0, 0, 0, 0]  # there is no window yet
    env.render()
    press(pygame, monkeypatch, *names)
    assert HumanOpponent(env).act(env.obs_agent_two()).tolist() == numbers
    turned = [-numbers[0], -numbers[1], *numbers[2:]]
    assert HumanOpponent(env, player=2).act().tolist() == turned
    with pytest.raises(ValueError, match="player must be 1 or 2"):
        HumanOpponent(env, player=3)


def test_human_plays_and_closes_the_window(pygame, monkeypatch, env):
    seen = []

    def policy(observation):
        seen.append(observation)
        if len(seen) == 20:
            pygame.event.post(pygame.event.Event(pygame.QUIT))
        return np.zeros(4)

    monkeypatch.setattr(pygame.time, "Clock", lambda: type("Clock", (), {"tick": lambda *_: 0})())
    press(pygame, monkeypatch, "right")
    assert play(env, policy) == (0, 0)
    assert len(seen) == 20
    assert seen[-1][6] < seen[0][6]  # the first player has approached
    assert pygame.display.get_caption()[0].startswith("You 0 : 0")


def test_closing_in_the_pause_after_a_goal(pygame, monkeypatch, env):
    monkeypatch.setattr(pygame.time, "Clock", lambda: type("Clock", (), {"tick": lambda *_: 0})())
    goal, asked = np.zeros(18), []
    goal[[0, 6, 12]] = (-3.0, 3.0, 4.0)

    def policy(_):
        asked.append(len(asked))
        env.set_state(goal)
        return np.zeros(4)

    render = env.render

    def render_and_leave(mode):
        if asked and env.done:
            pygame.event.post(pygame.event.Event(pygame.QUIT))
        return render(mode)

    monkeypatch.setattr(env, "render", render_and_leave)
    assert play(env, policy, max_steps=50) == (1, 0)
    assert asked == [0]


def test_event_queue_is_emptied(pygame, env):
    env.render()
    for _ in range(50):
        pygame.event.post(pygame.event.Event(pygame.MOUSEMOTION))
        env.render()
    assert not pygame.event.peek()


def test_two_windows_share_the_screen(pygame, env):
    other = HockeyEnv()
    env.render()
    other.render()
    other.close()
    env.render()
    assert pygame.display.get_init()
    env.close()
    assert not pygame.display.get_init()


def test_goals_are_counted(pygame, monkeypatch, env):
    monkeypatch.setattr(pygame.time, "Clock", lambda: type("Clock", (), {"tick": lambda *_: 0})())
    goal = np.zeros(18)
    goal[[0, 6, 12]] = (-3.0, 3.0, 4.0)

    def policy(_):
        env.set_state(goal)
        return np.zeros(4)

    assert play(env, policy, max_steps=3) == (3, 0)


def command(*arguments, **options):
    environment = {**os.environ, "SDL_VIDEODRIVER": "dummy"}
    return subprocess.run(
        [Path(sys.executable).with_name("shoal"), "play", "hockey", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
        **options,
    )


def test_command(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class player:\n    @staticmethod\n    def act(seen):\n        return [0.0] * 4\n"
        "act, number = player.act, 3\n"
    )
    ended = command("--opponent", "mine:player", "--mode", "1", "--max-steps", "3", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    ended = command("--opponent", "mine:act", "--max-steps", "5", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "You 0 : 0 mine:act\n"), ended.stderr
    for wrong, message in [
        (["--opponent", "average"], "opponent must be weak, strong or module:function"),
        (["--opponent", "mine:none"], "has no attribute 'none'"),
        (["--opponent", "nowhere:act"], "No module named 'nowhere'"),
        (["--opponent", "mine:number"], "mine:number must be a function or have a method act"),
        (["--mode", "FUN"], "mode must be one of"),
    ]:
        ended = command(*wrong, cwd=tmp_path)
        assert ended.returncode == 1
        assert message in " ".join(ended.stderr.split())
        assert "Traceback" not in ended.stderr


def test_interrupt_ends_the_command():
    environment = {**os.environ, "SDL_VIDEODRIVER": "dummy"}
    script = Path(sys.executable).with_name("shoal")
    playing = subprocess.Popen(
        [sys.executable, "-c", f"{RESTORED}; runpy.run_path({str(script)!r}, run_name='__main__')"],
        env={**environment, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        time.sleep(3)
        assert playing.poll() is None, playing.stderr.read()
        playing.send_signal(signal.SIGINT)
        _, said = playing.communicate(timeout=20)
    finally:
        playing.kill()
    assert playing.returncode not in (0, -signal.SIGKILL)
    assert "Traceback" not in said
