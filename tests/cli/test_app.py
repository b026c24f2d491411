"""The command: its help, its version, and its JSON output."""

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import shoal
from shoal._cli.app import app
from shoal._cli.output import print_json


def output_of(*words, columns=80):
    result = CliRunner().invoke(app, [*words], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_help_lists_every_command_with_a_sentence_in_a_panel():
    text = output_of("--help")
    commands = re.findall(r"^│ ([a-z][a-z-]+)  +(\S.*?) *│$", text, re.MULTILINE)
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert {name for name, _ in commands} == {name.replace("_", "-") for name in names} | {"play"}
    assert all(sentence.endswith(".") for _, sentence in commands)
    assert "─ Commands ─" not in text
    panels = [text.index(f"─ {title} ─") for title in ("Explore", "Train", "Serve", "Develop")]
    assert panels == sorted(panels)


def test_python_m_shoal_runs_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "--help"],
        capture_output=True, text=True, env={"COLUMNS": "80", "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: shoal [OPTIONS] COMMAND [ARGS]..." in done.stdout


def test_version():
    assert output_of("--version") == output_of("version") == f"{shoal.__version__}\n"
    data = json.loads(output_of("version", "--json"))
    assert data["shoal"] == shoal.__version__
    assert set(data) == {"shoal", "python", "numpy", "gymnasium"}


def test_new_kernel_prints_the_written_files_as_json(tmp_path):
    folder = tmp_path / "ball"
    data = json.loads(output_of("new-kernel", "CatchBall", "--folder", str(folder), "--json"))
    assert data["folder"] == str(folder)
    assert data["files"] == sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_print_json_writes_null_for_numbers_that_are_not_finite(capsys, number):
    print_json({"mean": number, "all": [1, (number, 2.5)], "name": "NaN"})
    assert json.loads(capsys.readouterr().out) == {
        "mean": None,
        "all": [1, [None, 2.5]],
        "name": "NaN",
    }
