"""Calls in a process of their own: what comes back, and what is left behind."""

from __future__ import annotations

import operator
import os
import subprocess
import time

import pytest

from benchmarks.alone import call_alone
from shoal._bench.process import ContenderError
from shoal._bench.results import Summary


def test_the_result_comes_from_another_process() -> None:
    assert call_alone(os.getpid) != os.getpid()
    assert call_alone(Summary, 2.0, 1.0, 3.0) == Summary(2.0, 1.0, 3.0)


def test_what_is_printed_does_not_disturb_the_result() -> None:
    assert call_alone(subprocess.call, ["echo", "hello"]) == 0


def test_a_failure_is_told_in_one_line() -> None:
    with pytest.raises(ContenderError, match=r"^ZeroDivisionError: "):
        call_alone(operator.floordiv, 1, 0)


def test_a_call_that_takes_too_long_is_given_up() -> None:
    start = time.monotonic()
    with pytest.raises(ContenderError, match=r"^not done within 0\.2 s$"):
        call_alone(time.sleep, 60, timeout=0.2)
    assert time.monotonic() - start < 30
