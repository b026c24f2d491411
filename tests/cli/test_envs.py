"""``shoal envs`` lists the available environments and what is missing for the others."""

import json
import subprocess
import sys

import gymnasium
import pytest
from typer.testing import CliRunner

from shoal._cli.app import app


def envs(*words, columns=80):
    """Return the exit status and the output."""
    result = CliRunner().invoke(app, ["envs", *words], env={"COLUMNS": str(columns)})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def listed(*words):
    """Return the listed environments by id."""
    status, output = envs(*words, "--json")
    assert status == 0
    return {env["id"]: env for env in json.loads(output)["environments"]}


def test_kernels_are_listed_with_their_spaces():
    found = listed("--kernels")
    assert {env["stepped_by"] for env in found.values()} == {"kernel"}
    assert {"CartPole-v1", "Taxi-v4" if "Taxi-v4" in found else "Taxi-v3"} < set(found)
    assert found["CartPole-v1"]["observation_space"] == "Box(4,) float32"
    assert found["shoal/HockeyOneDiscrete-v0"]["action_space"] == "Discrete(8)"


def test_how_environments_are_stepped_agrees_with_make():
    # In a new process, because other tests change Gymnasium's registry.
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "envs", "--json"], capture_output=True, check=True
    )
    found = {env["id"]: env for env in json.loads(done.stdout)["environments"]}
    assert found["MountainCar-v0"]["stepped_by"] == "kernel"
    assert found["LunarLander-v3"]["stepped_by"] == "python"
    assert found["ALE/Pong-v5"]["stepped_by"] == "atari"


def test_old_versions_are_listed_only_with_all_or_by_exact_id():
    assert "CartPole-v0" not in listed()
    assert "PongNoFrameskip-v4" not in listed()
    everything = listed("--all")
    assert everything["CartPole-v0"]["is_old"]
    assert everything["PongNoFrameskip-v4"]["is_old"]
    assert set(listed("CartPole-v0")) >= {"CartPole-v0"}


def test_case_and_punctuation_are_ignored():
    assert set(listed("mountaincar")) == {"MountainCar-v0", "MountainCarContinuous-v0"}
    assert "ALE/MsPacman-v5" in listed("ms_pacman")


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [("cratpole", "CartPole-v1"), ("Pendlum-v1", "Pendulum-v1"), ("hokey", "Hockey")],
)
def test_an_unknown_id_is_an_error_with_a_suggestion(text, suggestion):
    status, output = envs(text, columns=300)
    assert status == 1
    assert f"{text!r}; did you mean" in output
    assert suggestion in output


def test_an_unknown_id_without_similar_ids_is_an_error_without_suggestion():
    status, output = envs("xyzzy", columns=300)
    assert (status, output.strip()) == (1, "no environment id matches 'xyzzy'")


@pytest.fixture
def registered():
    """Registers environments for the duration of a test."""
    names = []

    def register(name, entry_point):
        gymnasium.register(name, entry_point)
        names.append(name)

    yield register
    for name in names:
        del gymnasium.registry[name]


class Broken(gymnasium.Env):
    """Cannot be created."""

    def __init__(self):
        raise RuntimeError("the arm is not plugged in\nsee the manual")


def test_spaces_option_creates_the_environments_and_reports_failures(registered):
    registered("Arm/Broken-v0", Broken)
    environments = listed("--spaces", "Arm/Broken")
    assert environments["Arm/Broken-v0"]["problem"] == "the arm is not plugged in"
    assert "cannot be created: the arm is not plugged in" in envs("--spaces", "Arm/Broken")[1]
    game = listed("--spaces", "ALE/Pong")["ALE/Pong-v5"]
    assert game["action_space"] == "Discrete(6)"


def test_environments_with_missing_packages_are_listed_with_the_package(registered):
    registered("Arm/Far-v0", "no_such_package.arms:Arm")
    assert listed("Arm/Far")["Arm/Far-v0"]["needs"] == "no_such_package"
    assert "1 more, if no_such_package is installed" in envs("Arm/Far")[1]
    assert envs("Arm/Far", "--installed")[0] == 1


def test_without_ale_py_the_output_shows_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    for name in [name for name, spec in gymnasium.registry.items() if "ale_py" in str(spec)]:
        monkeypatch.delitem(gymnasium.registry, name)
    status, output = envs()
    assert status == 0
    assert 'pip install "shoal[atari]"' in output
    assert "ALE/" not in output
    status, output = envs("breakout", columns=300)
    assert status == 1
    assert 'pip install "shoal[atari]"' in output


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit_the_terminal(columns):
    output = envs(columns=columns)[1]
    assert max(map(len, output.splitlines())) <= columns
    assert "\x1b" not in output
