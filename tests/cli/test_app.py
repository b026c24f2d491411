"""The command itself: its help, its version, and results that programs read."""

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import shoal
from shoal._cli.app import app
from shoal._cli.output import print_json


def said(*words, columns=80):
    result = CliRunner().invoke(app, [*words], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_command_has_a_title_and_a_line_of_help():
    told = said("--help")
    commands = re.findall(r"^│ ([a-z][a-z-]+)  +(\S.*?) *│$", told, re.MULTILINE)
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert {name for name, _ in commands} == {name.replace("_", "-") for name in names} | {"play"}
    assert all(text.endswith(".") for _, text in commands)
    assert "─ Commands ─" not in told
    titles = [told.index(f"─ {title} ─") for title in ("Try", "Train", "Serve", "Write")]
    assert titles == sorted(titles)


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "--help"],
        capture_output=True, text=True, env={"COLUMNS": "80", "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: shoal [OPTIONS] COMMAND [ARGS]..." in done.stdout


def test_the_version():
    assert said("--version") == said("version") == f"{shoal.__version__}\n"
    told = json.loads(said("version", "--json"))
    assert told["shoal"] == shoal.__version__
    assert set(told) == {"shoal", "python", "numpy", "gymnasium"}


def test_a_new_kernel_is_told_to_programs(tmp_path):
    told = json.loads(said("new-kernel", "CatchBall", "--folder", str(tmp_path / "ball"), "--json"))
    assert told["folder"] == str(tmp_path / "ball")
    assert told["files"] == sorted(path.name for path in (tmp_path / "ball").iterdir())


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_json_has_no_number_for_is_null(capsys, number):
    print_json({"mean": number, "all": [1, (number, 2.5)], "name": "NaN"})
    assert json.loads(capsys.readouterr().out) == {
        "mean": None,
        "all": [1, [None, 2.5]],
        "name": "NaN",
    }
