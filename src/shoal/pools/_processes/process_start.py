"""Ways to start a worker process, and to see whether it still lives.

``"fresh"`` starts a new interpreter, which imports Shoal and nothing of the user's until a factory
asks for it: the main module is never run again, so a script needs no guard around its main part,
and a notebook, an interactive session and a script on standard input work alike. What the caller's
process has changed since it was started (a module's variables, NumPy's global random state, filters
of warnings) is not known there. ``"fork"`` copies this process; ``"forkserver"`` and ``"spawn"``
are those of :mod:`multiprocessing`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol

from shoal.pools._processes.mailbox import Mail

__all__ = ["START_METHODS", "Process", "StartMethod", "kill", "start_process"]

StartMethod = Literal["fresh", "fork", "forkserver", "spawn"]
START_METHODS = ("fresh", "fork", "forkserver", "spawn")

# Read by the libraries when they are loaded, so they must be set before the process starts.
_THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)

_BOOTSTRAP = """\
import sys
sys.path[:] = {path!r}
sys.argv[:] = {arguments!r}
from shoal.pools._processes.worker_main import main
main({descriptor}, {parent}, {dies_with_thread})
"""


class Process(Protocol):
    """A worker process."""

    pid: int

    def exit_code(self) -> int | None:
        """None while it lives; else its exit code, or the signal that ended it as a negative."""

    def wait(self, timeout: float | None) -> bool:
        """Wait for its end, at most so long; returns whether it has ended."""


def start_process(
    method: StartMethod, threads: int | None, recipe: Any = None
) -> tuple[Process, Mail]:
    """Start a worker and return it with our end of the way to it.

    Args:
        method: How to start it.
        threads: How many threads libraries such as OpenBLAS may use in it; None leaves it to them.
        recipe: For a worker that is forked: what the others are sent, which it need not be.
    """
    here, there = socket.socketpair()
    try:
        with _limited_threads(threads):
            if method == "fresh":
                process: Process = _Interpreter(there)
            elif method == "fork":
                process = _Fork(there, recipe)
            else:
                process = _MultiprocessingChild(method, there)
    except BaseException:
        here.close()
        raise
    finally:
        there.close()
    return process, Mail(here, reads_while_sending=True)


def kill(process: Process) -> None:
    """End a process at once, with all that its environments have started and not let go of."""
    if process.exit_code() is not None:
        return
    try:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has ended by itself meanwhile
        return


class _Interpreter:
    """A new interpreter, that runs the worker's main function and nothing else."""

    def __init__(self, end: socket.socket) -> None:
        code = _BOOTSTRAP.format(
            path=sys.path,
            arguments=sys.argv,
            descriptor=end.fileno(),
            parent=os.getpid(),
            dies_with_thread=_is_main_thread(),
        )
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        self._popen = subprocess.Popen(
            [sys.executable, *flags, "-c", code],
            stdin=subprocess.DEVNULL,
            pass_fds=[end.fileno()],
            start_new_session=True,  # Ctrl-C is the caller's to deal with
        )
        self.pid = self._popen.pid

    def exit_code(self) -> int | None:
        return self._popen.poll()

    def wait(self, timeout: float | None) -> bool:
        try:
            self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True


class _Fork:
    """A copy of this process, that runs the worker's main function and nothing else.

    Not by :mod:`multiprocessing`: that would end it together with any other fork of this process.
    """

    def __init__(self, end: socket.socket, recipe: Any) -> None:
        self._code: int | None = None
        parent, dies_with_thread = os.getpid(), _is_main_thread()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                _run_child(end, parent, dies_with_thread, recipe)
                code = 0
            except SystemExit:
                pass
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)

    def exit_code(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.exit_code() is None:
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return True


class _MultiprocessingChild:
    """A process started by :mod:`multiprocessing`."""

    def __init__(self, method: StartMethod, end: socket.socket) -> None:
        context = multiprocessing.get_context(method)
        self._child = context.Process(  # type: ignore[attr-defined]
            target=_run_child,
            # A fork server is not the process whose end counts.
            args=(end, os.getpid(), method != "forkserver" and _is_main_thread(), None),
            name="shoal-worker",
            daemon=True,
        )
        self._child.start()
        self.pid = self._child.pid

    def exit_code(self) -> int | None:
        code: int | None = self._child.exitcode
        return code

    def wait(self, timeout: float | None) -> bool:
        self._child.join(timeout)
        return self._child.exitcode is not None


def _run_child(end: socket.socket, parent: int, dies_with_thread: bool, recipe: Any) -> None:
    from shoal.pools._processes.worker_main import main

    os.setsid()
    main(end.detach(), parent, dies_with_thread, recipe)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def _limited_threads(threads: int | None) -> Iterator[None]:
    """Let processes that are started meanwhile find the limit in their environment."""
    if threads is None:
        yield
        return
    saved = {name: os.environ.get(name) for name in _THREAD_LIMITS}
    os.environ.update(dict.fromkeys(_THREAD_LIMITS, str(threads)))
    try:
        yield
    finally:
        for name, value in saved.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
