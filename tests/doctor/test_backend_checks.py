"""Backends are tried in another process, which may crash, hang or say something else."""

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest

from shoal.doctor._backend_checks import BACKENDS, check_backends
from shoal.doctor._backend_trial import MAKERS

SAYING = """
import json, os, signal, sys, time
descriptor, seconds, *names = sys.argv[1:]
told = open(int(descriptor), "w", buffering=1)
def say(**what):
    print(json.dumps(what), file=told)
for name in names:
    say(begun=name)
    if name == "kernel":
        {kernel}
    say(name=name, rate=5.0, digests=["a", "b", "c"])
"""


@pytest.fixture
def program(tmp_path):
    """A child that does as it is told when it comes to kernels; all else works."""

    def write(kernel):
        (tmp_path / "child.py").write_text(SAYING.format(kernel=kernel))
        return [sys.executable, str(tmp_path / "child.py")]

    return write


def test_every_backend_gives_the_same_bits_here():
    names, told = BACKENDS[:-1], []
    outcomes = check_backends(names, 0.01, told=told.append)
    assert [(each.backend, each.state, each.problem) for each in outcomes] == [
        (name, "works", None) for name in names
    ]
    assert all(each.steps_per_second > 100 for each in outcomes)
    assert told == list(names)


@pytest.mark.slow
def test_a_cluster_that_is_started_for_it_gives_the_same_bits_and_leaves_nothing():
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
        ("os.kill(os.getpid(), signal.SIGSEGV)", "its process ended by SIGSEGV"),
        ("sys.exit('no luck')", "its process ended with status 1; no luck"),
        ("say(name=name, error='OSError: no memory'); continue", "OSError: no memory"),
        (
            "say(name=name, rate=1.0, digests=['a', 'b', 'x']); continue",
            "it differs from inline, first in step 2",
        ),
        (
            "say(name=name, rate=1.0, digests=['x', 'b', 'c']); continue",
            "it differs from inline, first in the reset",
        ),
    ],
)
def test_a_backend_that_fails_is_named_and_the_others_are_tried(program, kernel, problem):
    names = ["inline", "kernel", "thread"]
    inline, broken, thread = check_backends(names, 0.0, program=program(kernel))
    assert (inline.state, broken.state, thread.state) == ("works", "fails", "works")
    assert problem in broken.problem


def test_a_backend_that_hangs_is_given_up_and_its_process_ended(program, tmp_path):
    file = tmp_path / "pid"
    child = program(f"open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(100)")
    begun = time.monotonic()
    _, broken, thread = check_backends(
        ["inline", "kernel", "thread"], 0.0, program=child, patience=3.0
    )
    assert time.monotonic() - begun < 40
    assert "it hangs" in broken.problem
    assert thread.state == "works"
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)


def test_a_process_that_cannot_begin_fails_each_backend(tmp_path):
    program = [sys.executable, str(tmp_path / "nothing.py")]
    for outcome in check_backends(["inline", "kernel"], 0.0, program=program):
        assert outcome.state == "fails"
        assert "No such file" in outcome.problem
