"""``shoal bench`` measures, recommends a configuration, and leaves no processes behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shoal._cli.app import app

ENVIRONMENTS = '''
import multiprocessing, os, time
import gymnasium
from gymnasium.spaces import Discrete

class Quick(gymnasium.Env):
    """Steps immediately."""

    observation_space = Discrete(2)
    action_space = Discrete(2)

    def __init__(self, level=1, **others):
        self.level = level
        assert not others, others

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}

class Hanging(Quick):
    """Hangs in processes started by multiprocessing."""

    def __init__(self):
        if multiprocessing.parent_process():
            time.sleep(60)

class Slow(Quick):
    """Takes 50 ms for a step."""

    def step(self, action):
        time.sleep(0.05)
        return super().step(action)

class Picky(Quick):
    """Cannot be stepped."""

    def step(self, action):
        raise LookupError("only the left")

class Deadly(Quick):
    """Aborts its process when more than three instances exist."""

    made = 0

    def __init__(self):
        Deadly.made += 1
        if Deadly.made > 3:
            os.abort()
'''

QUICK = ["--rounds", "2", "--seconds", "0.02"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder in which the command runs."""
    (tmp_path / "mine.py").write_text(ENVIRONMENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def run_bench(*words):
    return CliRunner().invoke(app, ["bench", *words, *QUICK])


def test_json_contains_all_measurements_and_a_valid_call(folder):
    words = ["--json", "--num-envs", "2,4", "--workers", "3", "--against", "gymnasium,envpool"]
    result = run_bench("CartPole-v1", *words, "--plot", ".")
    assert result.exit_code == 0, result.stderr
    data = json.loads(result.stdout)
    assert {"machine", "versions", "settings", "cells", "recommendations"} <= set(data)
    assert data["settings"] == {"rounds": 2, "seconds": 0.02, "timeout": 60.0}
    two, four = (cell["contenders"] for cell in data["cells"])
    assert set(four) - set(two) == {"shoal-process-3"}
    for cell in (two, four):
        assert {"shoal", "loop", "gymnasium-sync", "gymnasium-own", "gymnasium-async"} <= set(cell)
        for name, measured in cell.items():
            assert len(measured["rates"]) == 2, name
            assert measured["times_loop"] > 0
            assert measured["times_best_peer"] > 0
    for count, advice in zip((2, 4), data["recommendations"], strict=True):
        assert advice["call"].startswith(f'shoal.make("CartPole-v1", num_envs={count}')
    assert data["left_out"] == {"envpool": "not installed: pip install envpool"}
    assert (folder / "shoal-bench-CartPole-v1.png").read_bytes().startswith(b"\x89PNG")
    assert "Measuring CartPole-v1" in result.stderr


def test_the_terminal_report_has_a_table_and_the_recommended_call(folder):
    options = ["--num-envs", "2", "--against", "none", "--env-arg", "level=2"]
    result = run_bench("mine.py:Quick", *options)
    assert result.exit_code == 0, result.stderr
    lines = [line.strip(" ▶│") for line in result.stdout.splitlines()]
    rows = {re.split(r"\s{2,}|\s[█▏▎▍▌▋▊▉]", line)[0] for line in lines}
    assert {"shoal auto", "shoal thread", "shoal process, 1 worker", "loop"} <= rows
    assert "shoal inline is the same as shoal auto" in lines
    assert "from mine import Quick" in lines
    assert any(re.fullmatch(r"shoal\.make\(Quick, num_envs=2,.* level=2\)", line) for line in lines)
    assert os.listdir(folder) == ["mine.py"]


def test_the_recommendation_warns_of_one_round_and_of_a_busy_machine(folder, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (500.0, 0.0, 0.0))
    words = ["mine:Quick", "--num-envs", "2", "--against", "none", "--workers", "1"]
    result = CliRunner().invoke(app, ["bench", *words, "--rounds", "1", "--seconds", "0.02"])
    assert result.exit_code == 0, result.stderr
    assert " 1 round, about" in result.stderr
    table, _, box = result.stdout.partition("Recommended for 2")
    assert re.search(r"^[▶ ] shoal auto .* -( +|$)", table, re.MULTILINE)
    assert "%" not in table
    text = " ".join(re.sub("[│╭╰─]", " ", box).split())
    assert "One round is too few for a reliable result. The machine is busy (load av" in text


@pytest.mark.slow  # tests/benchmarks/test_runner.py has a contender that hangs, too
def test_a_contender_that_hangs_is_reported_by_name(folder):
    words = ["--num-envs", "2", "--against", "gymnasium", "--workers", "1", "--timeout", "5"]
    result = run_bench("mine:Hanging", *words)
    assert result.exit_code == 0, result.stderr
    assert "gymnasium-async failed: no answer to 'open' within 5 s" in result.stdout
    assert "Recommended for 2" in result.stdout


def test_the_reasons_are_shown_if_no_configuration_of_shoal_can_be_measured(folder):
    result = run_bench("mine:Deadly", "--num-envs", "9", "--against", "none", "--workers", "1")
    assert result.exit_code == 1
    assert "shoal inline failed: died (SIGABRT)" in result.stdout
    assert "No configuration of Shoal could be measured." in result.stdout
    assert re.search(r"^  loop ", result.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["CartPole-v1", "--num-envs", "8,x"], "--num-envs must be positive numbers"),
        (["CartPole-v1", "--workers", "0"], "--workers must be positive numbers"),
        (
            ["CartPole-v1", "--against", "chess"],
            "--against must be none or a list of gymnasium, sb3",
        ),
        (["CartPole-v1", "--env-arg", "level"], "--env-arg must be NAME=VALUE, got 'level'"),
        (["CartPole-v1", "--timeout", "0"], "--timeout must be a positive number, got 0"),
        (["CartPole-v1", "--plot", "no/where.png"], "there is no folder no for the plot"),
        (["there.py:Env"], "there.py:Env cannot be created: FileNotFoundError: there is no file"),
    ],
)
def test_errors_are_printed_in_one_line(folder, words, problem):
    result = run_bench(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith(problem)
    assert os.listdir(folder) == ["mine.py"]


def test_an_exception_of_the_environment_is_reported_with_its_place(folder):
    result = run_bench("mine.py:Picky", "--against", "none")
    assert (result.exit_code, result.stdout) == (1, "")
    line = ENVIRONMENTS.splitlines().index('        raise LookupError("only the left")') + 1
    assert result.stderr.splitlines() == [
        "mine.py:Picky cannot be stepped: LookupError: only the left",
        f"  mine.py:{line} in step",
    ]


def test_plot_without_matplotlib_is_an_error_before_anything_is_measured(folder, monkeypatch):
    monkeypatch.setattr("shoal._cli.bench.find_spec", lambda name: None)
    result = run_bench("CartPole-v1", "--plot", "it.png")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == 'matplotlib is not installed: pip install "shoal[cli]"\n'


def descendants(pid):
    """Return the child processes of this one, and their children."""
    children = set()
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        children |= {int(child) for child in tasks.read_text().split()}
    return children.union(*map(descendants, children))


def is_running(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return result


def shoal_bench(*words):
    command = [sys.executable, "-c", "from shoal._cli import main; main()", "bench", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)


def assert_ends_cleanly(bench, number):
    """Send a signal, and check that the command and all its children end."""
    children = descendants(bench.pid)
    bench.send_signal(number)
    assert bench.wait(20) == 130
    assert wait_for(lambda: not any(map(is_running, children)))
    assert bench.stderr.read() == b"interrupted\n"
    assert bench.stdout.read() == b""


def test_sigint_ends_every_process(folder):
    words = ["mine:Slow", "--num-envs", "4", "--against", "none", "--workers", "2"]
    with shoal_bench(*words) as bench:
        try:
            assert b"Measuring mine:Slow" in bench.stderr.readline()
            # The interpreters of all contenders, and some workers.
            assert wait_for(lambda: len(descendants(bench.pid)) > 5)
            assert_ends_cleanly(bench, signal.SIGINT)
        finally:
            bench.kill()  # so that a failing test does not wait for it


def test_sigterm_ends_the_process_that_examines_the_environment(folder):
    with shoal_bench("mine:Slow") as bench:
        try:
            assert wait_for(lambda: descendants(bench.pid))
            assert_ends_cleanly(bench, signal.SIGTERM)
        finally:
            bench.kill()
