"""``shoal envs`` lists what can be made, and says what is missing."""

import json
import subprocess
import sys

import gymnasium
import pytest
from typer.testing import CliRunner

from shoal._cli.app import app


def envs(*words, columns=80):
    """The exit status, and what was said."""
    result = CliRunner().invoke(app, ["envs", *words], env={"COLUMNS": str(columns)})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def listed(*words):
    """The environments, as a program is told of them."""
    status, told = envs(*words, "--json")
    assert status == 0
    return {env["id"]: env for env in json.loads(told)["environments"]}


def test_kernels_are_listed_with_their_spaces():
    found = listed("--kernels")
    assert {env["stepped_by"] for env in found.values()} == {"kernel"}
    assert {"CartPole-v1", "Taxi-v4" if "Taxi-v4" in found else "Taxi-v3"} < set(found)
    assert found["CartPole-v1"]["observation_space"] == "Box(4,) float32"
    assert found["shoal/HockeyOneDiscrete-v0"]["action_space"] == "Discrete(8)"


def test_what_steps_an_environment_is_what_make_would_take():
    # In a process of its own: what other tests have done to Gymnasium's registry is not meant.
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "envs", "--json"], capture_output=True, check=True
    )
    found = {env["id"]: env for env in json.loads(done.stdout)["environments"]}
    assert found["MountainCar-v0"]["stepped_by"] == "kernel"
    assert found["LunarLander-v3"]["stepped_by"] == "python"
    assert found["ALE/Pong-v5"]["stepped_by"] == "atari"


def test_newest_versions_are_listed_unless_all_are_asked_for():
    assert "CartPole-v0" not in listed()
    assert "PongNoFrameskip-v4" not in listed()
    everything = listed("--all")
    assert everything["CartPole-v0"]["is_old"]
    assert everything["PongNoFrameskip-v4"]["is_old"]
    assert set(listed("CartPole-v0")) >= {"CartPole-v0"}


def test_a_part_of_a_name_is_enough_in_any_spelling():
    assert set(listed("mountaincar")) == {"MountainCar-v0", "MountainCarContinuous-v0"}
    assert "ALE/MsPacman-v5" in listed("ms_pacman")


@pytest.mark.parametrize(
    ("text", "near"),
    [("cratpole", "CartPole-v1"), ("Pendlum-v1", "Pendulum-v1"), ("hokey", "Hockey")],
)
def test_what_there_is_not_is_told_with_what_is_near(text, near):
    status, told = envs(text, columns=300)
    assert status == 1
    assert f"{text!r}; did you mean" in told
    assert near in told


def test_nothing_like_it():
    status, told = envs("xyzzy", columns=300)
    assert (status, told.strip()) == (1, "no environment is called anything like 'xyzzy'")


@pytest.fixture
def registered():
    """Registers environments for the time of a test."""
    names = []

    def register(name, entry_point):
        gymnasium.register(name, entry_point)
        names.append(name)

    yield register
    for name in names:
        del gymnasium.registry[name]


class Broken(gymnasium.Env):
    """Cannot be made."""

    def __init__(self):
        raise RuntimeError("the arm is not plugged in\nsee the manual")


def test_spaces_are_told_by_making_them_and_failures_by_their_reason(registered):
    registered("Arm/Broken-v0", Broken)
    found = listed("--spaces", "Arm/Broken")
    assert found["Arm/Broken-v0"]["problem"] == "the arm is not plugged in"
    assert "cannot be made: the arm is not plugged in" in envs("--spaces", "Arm/Broken")[1]
    game = listed("--spaces", "ALE/Pong")["ALE/Pong-v5"]
    assert game["action_space"] == "Discrete(6)"


def test_what_needs_something_that_is_not_here_says_what(registered):
    registered("Arm/Far-v0", "no_such_package.arms:Arm")
    assert listed("Arm/Far")["Arm/Far-v0"]["needs"] == "no_such_package"
    assert "1 more where there is no_such_package" in envs("Arm/Far")[1]
    assert envs("Arm/Far", "--installed")[0] == 1


def test_without_ale_py_the_line_to_install_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    for name in [name for name, spec in gymnasium.registry.items() if "ale_py" in str(spec)]:
        monkeypatch.delitem(gymnasium.registry, name)
    status, told = envs()
    assert status == 0
    assert 'pip install "shoal[atari]"' in told
    assert "ALE/" not in told
    status, told = envs("breakout", columns=300)
    assert status == 1
    assert 'pip install "shoal[atari]"' in told


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit(columns):
    told = envs(columns=columns)[1]
    assert max(map(len, told.splitlines())) <= columns
    assert "\x1b" not in told
