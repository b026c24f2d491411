"""The output and the exit status of ``shoal doctor``; it leaves no processes behind."""

import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shoal._cli.app import app
from shoal.doctor import Finding, examine
from shoal.doctor._backend_checks import BackendCheck

SHOAL = [sys.executable, "-m", "shoal"]


@pytest.fixture(scope="module")
def examination():
    """An examination of this machine, without backends."""
    return examine(0.0, [])


@pytest.fixture
def doctor(monkeypatch, examination):
    """Runs the command; the given fields replace those of the examination."""

    def run(*words, columns=80, **fields):
        monkeypatch.setattr("shoal.doctor.examine", lambda *_: replace(examination, **fields))
        result = CliRunner().invoke(app, ["doctor", *words], env={"COLUMNS": str(columns)})
        return result.exit_code, result.stdout

    return run


def test_every_backend_works_on_this_machine_according_to_json():
    command = [*SHOAL, "doctor", "--json", "--seconds", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    assert data["is_well"] is True
    states = {outcome["backend"]: outcome["state"] for outcome in data["backends"]}
    assert states == dict.fromkeys(["inline", "kernel", "thread", "process", "remote"], "works")
    assert {"machine", "software", "required", "extras", "findings"} < set(data)


BROKEN = {
    "backends": [
        BackendCheck("inline", "works", 123456.7),
        BackendCheck("kernel", "fails", None, "hangs: no response within 30 s"),
        BackendCheck("remote", "skipped", None, 'requires an extra: pip install "shoal[remote]"'),
    ],
    "findings": [Finding("problem", "backend kernel does not work", "report it")],
}


@pytest.mark.parametrize("columns", [80, 120])
def test_problems_are_shown_and_the_status_is_1(doctor, columns):
    status, output = doctor(columns=columns, **BROKEN)
    assert status == 1
    lines = [line.strip() for line in output.splitlines()]
    assert "kernel  fails    hangs: no response within 30 s" in lines
    assert re.search(r"inline +works +123,457 steps/s", output)
    assert 'pip install "shoal[remote]"' in output
    assert "-> report it" in lines
    assert "Shoal does not work correctly; see the problems above." in lines
    assert max(map(len, output.splitlines())) <= columns


def test_problems_are_shown_in_json_and_the_status_is_1(doctor):
    status, output = doctor("--json", **BROKEN)
    assert status == 1
    assert json.loads(output)["is_well"] is False


def test_with_warnings_only_the_status_is_0(doctor):
    status, output = doctor(findings=[Finding("warning", "a small thing")])
    assert status == 0
    assert "a small thing" in output
    assert "Everything that Shoal needs is installed and works." in output


def test_missing_extras_are_shown_with_the_command_that_installs_them(doctor, examination):
    extra, *_ = examination.extras
    parts = tuple(replace(part, state="missing", version=None) for part in extra.parts)
    _, output = doctor(extras=[replace(extra, state="missing", parts=parts)])
    assert 'atari  missing  pip install "shoal[atari]"' in output
    assert "GPL-2.0" in output


def test_output_to_a_pipe_or_with_no_color_has_no_colors(doctor, monkeypatch):
    _, output = doctor()
    assert "\x1b" not in output
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert re.search(r"\x1b\[[0-9;]*3[0-9]", doctor()[1])
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", doctor()[1])


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGKILL", -signal.SIGKILL)])
def test_the_child_process_ends_with_the_command(name, status):
    command = [*SHOAL, "doctor", "--seconds", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            child = _child_of(process.pid)
            process.send_signal(getattr(signal, name))
            assert process.wait(20) == status
        finally:
            process.kill()
    deadline = time.monotonic() + 5
    while _is_running(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_running(pid):
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _child_of(parent):
    """Return the id of the process that checks backends, once it has started."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for pid in children.read_text().split():
            if b"shoal.doctor._backend_trial" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
        time.sleep(0.05)
    raise AssertionError("no backend was checked")
