"""Exceptions raised in a user's code are reported with the type, the slot and the place."""

import json
import re
import sys

import pytest
from typer.testing import CliRunner

from shoal._cli.app import app

MODULE = """
import gymnasium
import numpy as np

class Mine(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps > 5:
            self.physics()
        return np.zeros(1, np.float32), 0.0, False, False, {}

    def physics(self):
        raise LookupError("bad physics")

class WithMap(Mine):
    def __init__(self):
        raise FileNotFoundError("map.json")

def returns_text(observations):
    return "left!"

def raises_index_error(observations):
    return observations["position"]
"""

REGISTERING_MODULE = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

class Unmade(CartPoleEnv):
    def __init__(self, **settings):
        raise ValueError("no map")

class Unstepped(CartPoleEnv):
    def step(self, action):
        if self.state[0] < 0:
            raise LookupError("no wind")
        return super().step(action)

gymnasium.register("Unmade-v0", Unmade)
gymnasium.register("Unstepped-v0", Unstepped)
"""


def shoal(*arguments):
    """Return the exit status and standard error."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stderr


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Modules of a user that raise errors. ``sys.path`` is restored afterwards."""
    (tmp_path / "workshop.py").write_text(MODULE)
    (tmp_path / "unfinished.py").write_text("class Mine:\n    def step(self:\n")
    (tmp_path / "importing.py").write_text("import nothing_like_this\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("workshop", "unfinished", "importing"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("backend", ["inline", "process"])
@pytest.mark.usefixtures("modules")
def test_an_exception_in_step_is_reported_with_its_slot_and_place(backend):
    workers = ["--workers", 1] if backend == "process" else []
    options = ["--num-envs", 2, "--backend", backend, "--seconds", 5, *workers]
    status, err = shoal("watch", "workshop.py:Mine", *options)
    assert status == 1
    first, *places = err.strip().splitlines()
    assert re.fullmatch(r"slot [01], in its step: LookupError: bad physics", first)
    assert places == ["  workshop.py:16 in step", "  workshop.py:20 in physics"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["workshop.py:WithMap", "--num-envs", 1, "--backend", "inline"],
            "slot 0, building the environment: FileNotFoundError: map.json\n"
            "  workshop.py:24 in __init__\n",
        ),
        (
            ["CartPole-v1", "--num-envs", 2, "--policy", "workshop:returns_text"],
            "the policy's actions: InvalidActionError: actions: got shape (), expected (2,): one "
            "action for each of 2 slots of Discrete(2)\n",
        ),
        (
            ["CartPole-v1", "--policy", "workshop:raises_index_error"],
            "the policy: IndexError: only integers, slices (`:`), ellipsis (`...`), numpy.newaxis "
            "(`None`) and integer or boolean arrays are valid indices\n"
            "  workshop.py:30 in raises_index_error\n",
        ),
        (
            ["CartPole-v1", "--policy", "workshop:WORD"],
            "module 'workshop' has no attribute 'WORD'\n",
        ),
        (
            ["CartPole-v1", "--policy", "math:pi"],
            "math:pi must be a function from observations to actions, got 3.141592653589793\n",
        ),
        (
            ["importing.py:Mine"],
            "ModuleNotFoundError: No module named 'nothing_like_this'\n"
            "  importing.py:1 in <module>\n",
        ),
    ],
)
@pytest.mark.usefixtures("modules")
def test_exceptions_in_user_code_are_reported_with_type_and_place(arguments, expected):
    status, err = shoal("watch", *arguments, "--seconds", 5)
    assert (status, err) == (1, expected)


@pytest.mark.usefixtures("modules")
def test_syntax_errors_are_reported_with_the_line():
    status, err = shoal("watch", "unfinished.py:Mine")
    assert status == 1
    assert re.search(r'^ +File ".*unfinished.py", line 2\n +def step\(self:', err)
    assert err.splitlines()[-1].startswith("SyntaxError: ")
    assert len(err.splitlines()) == 4


def test_train_reports_exceptions_of_environments_in_the_same_way(tmp_path, monkeypatch):
    (tmp_path / "broken_pole.py").write_text(REGISTERING_MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    options = ["--output", tmp_path, "--quiet", "--device", "cpu", "--num-envs", 2]

    def raised_by(env):
        config = {
            "task": {"id": f"broken_pole:{env}"},
            "curriculum": {"phases": [{"name": "only", "steps": 200}]},
            "agent": {"type": "DDDQN"},
        }
        (tmp_path / "config.json").write_text(json.dumps(config))
        return shoal("train", "config.json", *options)

    unmade = (
        "slot 0, building the environment: ValueError: no map\n  broken_pole.py:7 in __init__\n"
    )
    assert raised_by("Unmade-v0") == (1, unmade)
    unstepped = r"slot [01], in its step: LookupError: no wind\n  broken_pole.py:12 in step\n"
    status, output = raised_by("Unstepped-v0")
    assert status == 1
    assert re.fullmatch(unstepped, output)
