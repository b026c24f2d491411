"""``shoal doctor`` tells people and programs, and is done with what it has started."""

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
    """Of this machine, without backends."""
    return examine(0.0, [])


@pytest.fixture
def doctor(monkeypatch, examination):
    """Runs the command; of its examination this was found."""

    def run(*words, columns=80, **found):
        monkeypatch.setattr("shoal.doctor.examine", lambda *_: replace(examination, **found))
        result = CliRunner().invoke(app, ["doctor", *words], env={"COLUMNS": str(columns)})
        return result.exit_code, result.stdout

    return run


def test_this_machine_is_well_and_programs_can_read_it():
    command = [*SHOAL, "doctor", "--json", "--seconds", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["is_well"] is True
    states = {outcome["backend"]: outcome["state"] for outcome in told["backends"]}
    assert states == dict.fromkeys(["inline", "kernel", "thread", "process", "remote"], "works")
    assert {"machine", "software", "required", "extras", "findings"} < set(told)


BROKEN = {
    "backends": [
        BackendCheck("inline", "works", 123456.7),
        BackendCheck("kernel", "fails", None, "it hangs: nothing was heard of it for 30 s"),
        BackendCheck("remote", "skipped", None, 'needs an extra: pip install "shoal[remote]"'),
    ],
    "findings": [Finding("problem", "the backend kernel does not work", "mend it")],
}


@pytest.mark.parametrize("columns", [80, 120])
def test_what_is_broken_is_told_in_place_and_ends_with_1(doctor, columns):
    status, told = doctor(columns=columns, **BROKEN)
    assert status == 1
    lines = [line.strip() for line in told.splitlines()]
    assert "kernel  fails    it hangs: nothing was heard of it for 30 s" in lines
    assert re.search(r"inline +works +123,457 steps/s", told)
    assert 'pip install "shoal[remote]"' in told
    assert "-> mend it" in lines
    assert "Something that Shoal needs is broken: see above." in lines
    assert max(map(len, told.splitlines())) <= columns


def test_a_broken_machine_is_told_to_programs_too(doctor):
    status, told = doctor("--json", **BROKEN)
    assert status == 1
    assert json.loads(told)["is_well"] is False


def test_warnings_are_no_failure(doctor):
    status, told = doctor(findings=[Finding("warning", "a small thing")])
    assert status == 0
    assert "a small thing" in told
    assert "All that Shoal needs is here, and works." in told


def test_extras_are_told_with_the_line_to_install(doctor, examination):
    extra, *_ = examination.extras
    parts = tuple(replace(part, state="missing", version=None) for part in extra.parts)
    _, told = doctor(extras=[replace(extra, state="missing", parts=parts)])
    assert 'atari  missing  pip install "shoal[atari]"' in told
    assert "GPL-2.0" in told


def test_neither_a_pipe_nor_no_color_is_given_colours(doctor, monkeypatch):
    _, told = doctor()
    assert "\x1b" not in told
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert re.search(r"\x1b\[[0-9;]*3[0-9]", doctor()[1])
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", doctor()[1])


@pytest.mark.parametrize(("how", "status"), [("SIGINT", 130), ("SIGKILL", -signal.SIGKILL)])
def test_however_it_ends_what_it_has_started_ends_too(how, status):
    command = [*SHOAL, "doctor", "--seconds", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            child = _child_of(process.pid)
            process.send_signal(getattr(signal, how))
            assert process.wait(20) == status
        finally:
            process.kill()
    deadline = time.monotonic() + 5
    while _is_there(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_there(pid):
    """Whether a process has not ended; one that nobody has asked after has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _child_of(parent):
    """The process that tries backends, once there is one."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for pid in children.read_text().split():
            if b"shoal.doctor._backend_trial" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
        time.sleep(0.05)
    raise AssertionError("no backend was tried")
