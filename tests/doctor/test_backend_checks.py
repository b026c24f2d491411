"""Backends are checked in a child process, which may crash, hang or return wrong results."""

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest

from shoal.doctor._backend_checks import BACKENDS, check_backends
from shoal.doctor._backend_trial import MAKERS

CHILD = """
import json, os, signal, sys, time
descriptor, seconds, *names = sys.argv[1:]
results = open(int(descriptor), "w", buffering=1)
def write(**result):
    print(json.dumps(result), file=results)
for name in names:
    write(started=name)
    if name == "kernel":
        {kernel}
    write(name=name, rate=5.0, digests=["a", "b", "c"])
"""


@pytest.fixture
def program(tmp_path):
    """Writes a child program that runs the given code for kernels; other backends work."""

    def write(kernel):
        (tmp_path / "child.py").write_text(CHILD.format(kernel=kernel))
        return [sys.executable, str(tmp_path / "child.py")]

    return write


def test_every_backend_returns_the_same_bits():
    names, started = BACKENDS[:-1], []
    outcomes = check_backends(names, 0.01, on_start=started.append)
    assert [(each.backend, each.state, each.problem) for each in outcomes] == [
        (name, "works", None) for name in names
    ]
    assert all(each.steps_per_second > 100 for each in outcomes)
    assert started == list(names)


@pytest.mark.slow
def test_ray_returns_the_same_bits_and_leaves_no_files():
    pytest.importorskip("ray")
    before = set(Path(tempfile.gettempdir()).glob("shoal-doctor-*"))
    _, ray = check_backends(["inline", "ray"], 0.01)
    assert (ray.state, ray.problem) == ("works", None)
    assert set(Path(tempfile.gettempdir()).glob("shoal-doctor-*")) == before


def test_every_backend_has_a_maker():
    assert tuple(MAKERS) == BACKENDS


@pytest.mark.parametrize(
    ("kernel", "problem"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "process killed by SIGSEGV"),
        ("sys.exit('no luck')", "process exited with status 1; no luck"),
        ("write(name=name, error='OSError: no memory'); continue", "OSError: no memory"),
        (
            "write(name=name, rate=1.0, digests=['a', 'b', 'x']); continue",
            "results differ from inline, first in step 2",
        ),
        (
            "write(name=name, rate=1.0, digests=['x', 'b', 'c']); continue",
            "results differ from inline, first in the reset",
        ),
    ],
)
def test_a_failing_backend_is_reported_and_the_others_are_checked(program, kernel, problem):
    names = ["inline", "kernel", "thread"]
    inline, broken, thread = check_backends(names, 0.0, program=program(kernel))
    assert (inline.state, broken.state, thread.state) == ("works", "fails", "works")
    assert problem in broken.problem


def test_a_hanging_backend_is_reported_and_its_process_killed(program, tmp_path):
    file = tmp_path / "pid"
    child = program(f"open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(100)")
    start = time.monotonic()
    _, broken, thread = check_backends(
        ["inline", "kernel", "thread"], 0.0, program=child, timeout=3.0
    )
    assert time.monotonic() - start < 40
    assert "hangs: no response" in broken.problem
    assert thread.state == "works"
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)


def test_every_backend_fails_if_the_process_cannot_start(tmp_path):
    program = [sys.executable, str(tmp_path / "nothing.py")]
    for outcome in check_backends(["inline", "kernel"], 0.0, program=program):
        assert outcome.state == "fails"
        assert "No such file" in outcome.problem
