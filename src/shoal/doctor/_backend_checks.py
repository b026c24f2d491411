"""Whether every backend works here: the same seeds must give the same bits, within a time."""

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
"""In the order in which they are tried; the first is what the others are compared with."""

_PROGRAM = (sys.executable, "-m", "shoal.doctor._backend_trial")

_PATIENCE = {"ray": 90.0}
"""Seconds that a backend has, besides those in which it is timed."""

_USUAL_PATIENCE = 30.0

_GRACE = 2.0
"""Seconds that the process has to end when there is nothing left to try."""

_LINES_OF_ERRORS = 3


@dataclass(frozen=True)
class BackendCheck:
    """What came of trying a backend."""

    backend: str
    state: Literal["works", "fails", "skipped"]
    steps_per_second: float | None = None
    problem: str | None = None
    """Why it fails, or was not tried."""


def check_backends(
    names: Sequence[str],
    seconds: float,
    *,
    program: Sequence[str] = _PROGRAM,
    patience: float | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> list[BackendCheck]:
    """Let each backend step the same environments in another process.

    Args:
        names: Of :data:`BACKENDS`.
        seconds: For how long each is timed.
        program: What tries them; see :mod:`shoal.doctor._backend_trial`.
        patience: Seconds that each has besides; by default enough for a slow machine.
        told: Called with the name of the backend that is being tried.
    """
    outcomes: dict[str, BackendCheck] = {}
    expected: list[str] | None = None
    while left := [name for name in names if name not in outcomes]:
        for outcome, digests in _in_one_process(left, seconds, program, patience, told):
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
    problem = f"it differs from {BACKENDS[0]}, first {where}, with the same seeds and actions"
    return BackendCheck(outcome.backend, "fails", outcome.steps_per_second, problem)


def _in_one_process(
    names: Sequence[str],
    seconds: float,
    program: Sequence[str],
    patience: float | None,
    told: Callable[[str], None],
) -> Iterator[tuple[BackendCheck, list[str]]]:
    """The outcomes of one process, the last of which may be that it has crashed or hangs."""
    with tempfile.TemporaryFile() as errors, _scratch() as scratch:
        lines, sink = os.pipe()
        try:
            child = subprocess.Popen(
                [*program, str(sink), str(seconds), *names],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=[sink],
                start_new_session=True,  # Ctrl-C is for this process, which then ends that one
                # Ray leaves its logs where it is told to, and asks nobody whether to be counted.
                env={"RAY_USAGE_STATS_ENABLED": "0", **os.environ, "RAY_TMPDIR": scratch},
            )
        except BaseException:
            os.close(lines)
            raise
        finally:
            os.close(sink)
        reader = _Reader(lines)
        try:
            for trying in names:
                told(trying)
                wait = _PATIENCE.get(trying, _USUAL_PATIENCE) if patience is None else patience
                result = reader.result_of(trying, time.monotonic() + wait + seconds)
                if result is None:
                    yield (
                        BackendCheck(trying, "fails", None, _ended(child, errors, wait + seconds)),
                        [],
                    )
                    return
                if "error" in result:
                    yield BackendCheck(trying, "fails", None, result["error"]), []
                else:
                    yield BackendCheck(trying, "works", result["rate"]), result["digests"]
            with suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE)
        finally:
            os.close(lines)
            _end(child)


def _scratch() -> tempfile.TemporaryDirectory[str]:
    # What Ray has started may still write there when its process has ended.
    return tempfile.TemporaryDirectory(prefix="shoal-doctor-", ignore_cleanup_errors=True)


class _Reader:
    """Reads what a child tells, line by line, and does not wait for ever."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unread = b""

    def result_of(self, name: str, deadline: float) -> dict[str, Any] | None:
        """What came of a backend, or None if the child ends, or says nothing in time."""
        while (line := self._line(deadline)) is not None:
            result: dict[str, Any] = json.loads(line)
            if result.get("name") == name:
                return result
        return None

    def _line(self, deadline: float) -> bytes | None:
        while b"\n" not in self._unread:
            left = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select([self._descriptor], [], [], left)
            more = os.read(self._descriptor, 1 << 16) if readable else b""
            if not more:
                return None
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line


def _ended(child: subprocess.Popen[bytes], errors: Any, seconds: float) -> str:
    """Why a child has said nothing more."""
    try:
        status = child.wait(1.0)  # it has closed its end of the pipe a moment ago, or it hangs
    except subprocess.TimeoutExpired:
        return f"it hangs: nothing was heard of it for {seconds:g} s"
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    errors.seek(0)
    said = errors.read().decode(errors="replace").strip().splitlines()[-_LINES_OF_ERRORS:]
    return "; ".join([f"its process ended {how}", *(line.strip() for line in said)])


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child that has not ended by itself, and what it has started."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
