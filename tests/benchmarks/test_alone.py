"""Calls in a new process: results, errors and timeouts."""

from __future__ import annotations

import operator
import os
import subprocess
import time

import pytest

from benchmarks.alone import call_alone
from shoal._bench.process import ContenderError
from shoal._bench.results import Summary


def test_the_call_runs_in_another_process() -> None:
    assert call_alone(os.getpid) != os.getpid()
    assert call_alone(Summary, 2.0, 1.0, 3.0) == Summary(2.0, 1.0, 3.0)


def test_printed_output_does_not_mix_with_the_result() -> None:
    assert call_alone(subprocess.call, ["echo", "hello"]) == 0


def test_an_exception_is_reported_in_one_line() -> None:
    with pytest.raises(ContenderError, match=r"^ZeroDivisionError: "):
        call_alone(operator.floordiv, 1, 0)


def test_a_call_that_exceeds_the_timeout_is_killed() -> None:
    start = time.monotonic()
    with pytest.raises(ContenderError, match=r"^not done within 0\.2 s$"):
        call_alone(time.sleep, 60, timeout=0.2)
    assert time.monotonic() - start < 30
