"""Shell completion offers matching candidates, and is fast."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import shoal
from shoal._cli import completion


def test_bash_completes_commands_environments_and_runs(tmp_path):
    """Runs the script that ``--install-completion`` installs, in a folder with a run."""
    run = tmp_path / "results" / "runs" / "mine"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    command = tmp_path / "bin" / "shoal"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m shoal "$@"\n')
    command.chmod(0o755)
    typing = """
        eval "$(_SHOAL_COMPLETE=source_bash shoal)"
        typed() {
            COMP_WORDS=(shoal "$@"); COMP_CWORD=$#; _shoal_completion shoal; echo "${COMPREPLY[*]}"
        }
        typed doc; typed serve MountainCar; typed resume ""
        typed watch CartPole-v1 --backend p; typed bench CartPole-v1 --against gymnasium,
    """
    environment = {
        **os.environ,
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(shoal.__file__).parents[1]),
    }
    done = subprocess.run(
        ["bash", "-c", typing], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "doctor",
        "MountainCar-v0 MountainCarContinuous-v0",
        "results/runs/mine",
        "python process",
        "gymnasium,sb3 gymnasium,envpool",
    ]


def test_values_of_options_are_completed():
    assert completion.backends("") == [
        "auto", "kernel", "python", "inline", "thread", "process", "ray"
    ]  # fmt: skip
    assert completion.peers("") == ["gymnasium", "sb3", "envpool", "none"]
    assert completion.peers("sb3,envpool,gym") == ["sb3,envpool,gymnasium"]


def test_older_versions_are_offered_only_if_no_newer_one_matches():
    assert completion.environments("CartPole-v") == ["CartPole-v1"]
    assert completion.environments("CartPole-v0") == ["CartPole-v0"]
    assert completion.environments("Nothing") == []
    assert "ALE/Breakout-v5" in completion.environments("ALE/")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with files, and with a run outside of the default folder of runs."""
    (tmp_path / "mine" / "first").mkdir(parents=True)
    (tmp_path / "mine" / "first" / "run.json").write_text("{}")
    for name in ("good.agent", "mine/best.agent", "weekly.json", "notes.txt"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder")
def test_runs_agents_and_configs_are_completed_in_the_typed_folder():
    assert completion.runs("") == []
    assert completion.runs("mine/") == ["mine/first"]
    assert completion.agents("") == ["good.agent"]
    assert completion.agents("m") == ["mine/"]
    assert completion.agents("mine/") == ["mine/first", "mine/best.agent"]
    assert completion.players("we") == ["weak"]
    assert completion.configs("weekly") == ["weekly.json"]
    assert "hockey_sac" in completion.configs("")
    assert completion.agents("nowhere/at/all") == []


def test_no_slow_module_is_imported():
    code = """
import sys
from shoal._cli.app import app
from shoal._cli import completion
completion.environments(""), completion.configs(""), completion.players("")
completion.backends(""), completion.peers("")
slow = {"torch", "matplotlib", "ray", "numba", "openskill", "pygame", "cv2", "shoal.doctor"}
print(sorted(slow & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
