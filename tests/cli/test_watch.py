"""``shoal watch`` steps environments, and shows them in a terminal and on a page."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from typer.testing import CliRunner

from shoal._cli.app import app
from tests.live.page_client import Stream, fetch, fetch_frames

SHOAL = [sys.executable, "-c", "from shoal._cli import main; main()"]


def shoal(*arguments):
    """Return the exit status, standard output and standard error."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A user's module with an environment and a policy."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "watched_world.py").write_text(
        textwrap.dedent("""
            import gymnasium
            import numpy as np

            class Mine(gymnasium.Env):
                metadata = {"render_modes": ["rgb_array"], "render_fps": 50}
                observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
                action_space = gymnasium.spaces.Discrete(2)

                def __init__(self, render_mode=None, size=20):
                    self.render_mode, self.size = render_mode, size

                def reset(self, *, seed=None, options=None):
                    super().reset(seed=seed)
                    return np.zeros(1, np.float32), {}

                def step(self, action):
                    return np.ones(1, np.float32), float(action), False, False, {}

                def render(self):
                    return np.full((self.size, self.size, 3), 7, np.uint8)

            def always_one(observations):
                return np.ones(len(observations), np.int64)
        """)
    )


def test_it_stops_after_the_given_time_and_prints_the_speed():
    status, out, _ = shoal("watch", "CartPole-v1", "--num-envs", 4, "--seconds", 0.1)
    assert status == 0
    first, *_, last = out.splitlines()
    assert first.startswith("start: 4 slots")
    match = re.fullmatch(
        r"In [\d.]+ m?s: [\d,]+ steps/s, ([\d,]+) steps, ([\d,]+) episodes, mean return .*", last
    )
    assert match, last
    assert all(int(number.replace(",", "")) > 0 for number in match.groups())


def test_json_prints_the_final_state_and_nothing_else_to_stdout():
    status, out, err = shoal("watch", "CartPole-v1", "--seconds", 0.2, "--json", "--seed", 3)
    state = json.loads(out)
    assert status == 0
    assert state["num_envs"] == 16
    assert state["steps"] > 0
    assert state["returns"]["mean"] > 0
    assert state["ended"] == "closed"
    assert "start" in err


def test_an_environment_from_a_file_with_a_policy_and_arguments(module):
    *_, out, _ = shoal(
        *(
            "watch",
            "watched_world.py:Mine",
            "--backend",
            "inline",
            "--num-envs",
            3,
            "--seconds",
            0.2,
        ),
        *("--policy", "watched_world:always_one", "--env-arg", "size=40", "--json"),
    )
    state = json.loads(out)
    assert "inline" in state["plan"]
    assert state["steps"] > 0


def test_speed_1_steps_at_the_frame_rate(module):
    *_, out, _ = shoal(
        *(
            "watch",
            "watched_world.py:Mine",
            "--backend",
            "inline",
            "--num-envs",
            2,
            "--seconds",
            0.5,
        ),
        *("--speed", 1, "--json"),
    )
    batches = json.loads(out)["batches"]
    assert 5 <= batches <= 26  # at most 50 per second


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["Nope-v1"], "Nope"),
        (["math:pi"], "expected an environment's id"),
        (["nowhere.py:Env"], "there is no file nowhere.py"),
        (["CartPole-v1", "--backend", "banana"], "backend must be one of"),
        (["CartPole-v1", "--env-arg", "g"], "--env-arg must be NAME=VALUE"),
        (["CartPole-v1", "--policy", "math:nothing"], "nothing"),
        (["CartPole-v1", "--web", "--host", "203.0.113.1"], "Cannot assign"),
    ],
)
def test_errors_are_printed_in_one_line(arguments, expected):
    status, out, err = shoal("watch", *arguments, "--seconds", 1)
    assert status == 1
    assert expected in err
    assert out == ""
    assert len(err.strip().splitlines()) == 1


def test_the_page_shows_frames_until_ctrl_c(module):
    with subprocess.Popen(
        [*SHOAL, "watch", "watched_world.py:Mine", "--web", "--port", "0", "--backend", "inline"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watching:
        line = watching.stdout.readline()
        assert "http" in line, line + watching.stderr.read()
        url = re.search(r"http://\S+/", line).group()
        stream = Stream(url)
        deadline = time.monotonic() + 20
        while not (frames := fetch_frames(url)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert set(frames[0][4]) == {7}
        watching.send_signal(signal.SIGINT)
        assert stream.join()["ended"] == "closed"
        assert watching.wait(10) == 0
        assert watching.stderr.read() == ""
    with pytest.raises(OSError, match="refused"):
        fetch(url)


@pytest.mark.parametrize("columns", [60, 120])
def test_in_a_terminal_the_display_is_drawn_and_removed(columns):
    leader, follower = pty.openpty()
    watching = subprocess.Popen(
        [*SHOAL, "watch", "CartPole-v1", "--seconds", "1.5"],
        stdout=follower,
        stderr=follower,
        stdin=follower,
        env={**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"},
    )
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], 20)[0]:
        try:
            part = os.read(leader, 65_536)
        except OSError:
            break
        shown += part
    os.close(leader)
    assert watching.wait(10) == 0
    text = shown.decode()
    assert "CartPole-v1" in text
    assert "steps/s" in text
    assert "caller" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is restored
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert max(len(line) for line in re.split(r"[\r\n]+", plain)) <= columns
