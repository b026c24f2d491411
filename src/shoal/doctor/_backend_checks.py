"""Check that every backend works: with the same seeds, all must return the same bits."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["BACKENDS", "BackendCheck", "check_backends"]

BACKENDS = ("inline", "kernel", "thread", "process", "remote", "ray")
"""In the order of the checks. The others are compared with the first."""

_PROGRAM = (sys.executable, "-m", "shoal.doctor._backend_trial")

_TIMEOUTS = {"ray": 90.0}
"""Seconds that a backend may take in addition to the time for which it is measured."""

_DEFAULT_TIMEOUT = 30.0

_EXIT_TIMEOUT = 2.0
"""Seconds that the child process may take to exit after the last backend."""

_LINES_OF_ERRORS = 3


@dataclass(frozen=True)
class BackendCheck:
    """The result of checking a backend."""

    backend: str
    state: Literal["works", "fails", "skipped"]
    steps_per_second: float | None = None
    problem: str | None = None
    """The reason if it fails or was skipped."""


def check_backends(
    names: Sequence[str],
    seconds: float,
    *,
    program: Sequence[str] = _PROGRAM,
    timeout: float | None = None,
    on_start: Callable[[str], None] = lambda _: None,
) -> list[BackendCheck]:
    """Step the same environments with each backend, in a child process.

    Args:
        names: Backends, from :data:`BACKENDS`.
        seconds: How long to measure the speed of each.
        program: The command of the child process; see :mod:`shoal.doctor._backend_trial`.
        timeout: Seconds that each may take in addition; by default enough for a slow machine.
        on_start: Called with the name of each backend before it is checked.
    """
    outcomes: dict[str, BackendCheck] = {}
    expected: list[str] | None = None
    while remaining := [name for name in names if name not in outcomes]:
        for outcome, digests in _run_child(remaining, seconds, program, timeout, on_start):
            if outcome.backend == BACKENDS[0]:
                expected = digests
            outcomes[outcome.backend] = _compared(outcome, digests, expected)
    return [outcomes[name] for name in names]


def _compared(
    outcome: BackendCheck, digests: list[str], expected: list[str] | None
) -> BackendCheck:
    if outcome.state != "works" or expected is None or digests == expected:
        return outcome
    pairs = zip(digests, expected, strict=False)
    step = next((step for step, (got, wanted) in enumerate(pairs) if got != wanted), len(digests))
    where = f"in step {step}" if step else "in the reset"
    problem = f"results differ from {BACKENDS[0]}, first {where}, with the same seeds and actions"
    return BackendCheck(outcome.backend, "fails", outcome.steps_per_second, problem)


def _run_child(
    names: Sequence[str],
    seconds: float,
    program: Sequence[str],
    timeout: float | None,
    on_start: Callable[[str], None],
) -> Iterator[tuple[BackendCheck, list[str]]]:
    """Yield the outcomes from one child process; it is not reused after a crash or a timeout."""
    with tempfile.TemporaryFile() as errors, _scratch() as scratch:
        reading_end, writing_end = os.pipe()
        try:
            child = subprocess.Popen(
                [*program, str(writing_end), str(seconds), *names],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=[writing_end],
                start_new_session=True,  # Ctrl-C reaches only this process, which kills the child
                # Disable Ray's usage statistics, which it would ask about; RAY_TMPDIR is for logs.
                env={"RAY_USAGE_STATS_ENABLED": "0", **os.environ, "RAY_TMPDIR": scratch},
            )
        except BaseException:
            os.close(reading_end)
            raise
        finally:
            os.close(writing_end)
        reader = _ResultReader(reading_end)
        try:
            for name in names:
                on_start(name)
                limit = _TIMEOUTS.get(name, _DEFAULT_TIMEOUT) if timeout is None else timeout
                limit += seconds
                result = reader.result_of(name, time.monotonic() + limit)
                if result is None:
                    yield BackendCheck(name, "fails", None, _failure(child, errors, limit)), []
                    return
                if "error" in result:
                    yield BackendCheck(name, "fails", None, result["error"]), []
                else:
                    yield BackendCheck(name, "works", result["rate"]), result["digests"]
            with suppress(subprocess.TimeoutExpired):
                child.wait(_EXIT_TIMEOUT)
        finally:
            os.close(reading_end)
            _kill(child)


def _scratch() -> tempfile.TemporaryDirectory[str]:
    # Processes of Ray may still write there after the child has exited.
    return tempfile.TemporaryDirectory(prefix="shoal-doctor-", ignore_cleanup_errors=True)


class _ResultReader:
    """Reads a child's results, one JSON line each, with a deadline."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unread = b""

    def result_of(self, name: str, deadline: float) -> dict[str, Any] | None:
        """Return the result for a backend, or None if the child exits or the deadline passes."""
        while (line := self._line(deadline)) is not None:
            result: dict[str, Any] = json.loads(line)
            if result.get("name") == name:
                return result
        return None

    def _line(self, deadline: float) -> bytes | None:
        while b"\n" not in self._unread:
            remaining = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select([self._descriptor], [], [], remaining)
            more = os.read(self._descriptor, 1 << 16) if readable else b""
            if not more:
                return None
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line


def _failure(child: subprocess.Popen[bytes], errors: Any, seconds: float) -> str:
    """Explain why a child has sent no result: it exited, or it hangs."""
    try:
        status = child.wait(1.0)  # if it closed the pipe, it is about to exit
    except subprocess.TimeoutExpired:
        return f"hangs: no response within {seconds:g} s"
    if status < 0:
        reason = f"process killed by {signal.Signals(-status).name}"
    else:
        reason = f"process exited with status {status}"
    errors.seek(0)
    output = errors.read().decode(errors="replace").strip().splitlines()[-_LINES_OF_ERRORS:]
    return "; ".join([reason, *(line.strip() for line in output)])


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that is still running, with its process group."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
