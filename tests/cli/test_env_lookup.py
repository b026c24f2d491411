"""Targets on the command line are loaded; errors suggest what was meant."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from shoal._cli.app import app

FILE = """
raise SystemExit("this module must not be executed")

class Base(gymnasium.Env[np.ndarray, int]):
    pass

class Walker(Base):
    pass

class NoEnvironment(dict):
    pass
"""


@pytest.mark.parametrize("command", ["watch", "bench", "serve"])
def test_a_file_without_a_class_name_is_an_error_that_lists_its_environments(
    tmp_path, monkeypatch, command
):
    (tmp_path / "worlds.py").write_text(FILE)
    (tmp_path / "empty.py").write_text("")
    monkeypatch.chdir(tmp_path)
    for file, expected in (
        ("worlds.py", "worlds.py:Base or worlds.py:Walker"),
        ("empty.py", "empty.py:NAME"),
    ):
        result = CliRunner().invoke(app, [command, file])
        assert result.exit_code == 1
        assert result.stderr.endswith(f"the name of the class is missing; expected {expected}\n")
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Sprinte", "module 'runners' has no attribute 'Sprinte'; did you mean Sprinter?"),
        ("Sprinter.maek", "type object 'Sprinter' has no attribute 'maek'; did you mean make?"),
        ("Q", "module 'runners' has no attribute 'Q'"),
    ],
)
def test_a_misspelled_name_is_an_error_with_a_suggestion(tmp_path, monkeypatch, name, message):
    (tmp_path / "runners.py").write_text("class Sprinter:\n    make = print\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    result = CliRunner().invoke(app, ["watch", f"runners.py:{name}"])
    assert (result.exit_code, result.stderr) == (1, f"{message}\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "cartpole_dddqn", "--web", "--port", "0"], "training needs msgspec, "),
        (["resume", ".", "--web", "--port", "0"], "training needs msgspec, "),
        (["resume", "nothing", "--web", "--port", "0"], "there is no run nothing\n"),
        (["eval", "nothing.agent"], "there is no agent nothing.agent\n"),
        (["watch", "nothing.agent"], "there is no agent nothing.agent\n"),
    ],
)
def test_a_missing_path_or_a_missing_extra_is_reported_in_one_line(words, expected, tmp_path):
    code = "import sys; sys.modules['msgspec'] = None; from shoal._cli import main; main()"
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(expected)
    assert len(done.stderr.splitlines()) == 1
