"""Ways to start a worker process, and to check whether it is alive.

``"fresh"`` starts a new interpreter, which imports only Shoal until a factory needs more. It never
runs the main module, so a script needs no ``if __name__ == "__main__"`` guard, and notebooks,
interactive sessions and scripts on standard input work as well. Changes that the caller's process
has made at run time (module variables, NumPy's global random state, warning filters) do not carry
over. ``"fork"`` copies this process. ``"forkserver"`` and ``"spawn"`` are those of
:mod:`multiprocessing`.
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
from contextlib import contextmanager, suppress
from typing import Any, Literal, Protocol

from shoal.pools._processes.mailbox import MessageSocket

__all__ = ["START_METHODS", "Process", "StartMethod", "kill", "start_process"]

StartMethod = Literal["fresh", "fork", "forkserver", "spawn"]
START_METHODS = ("fresh", "fork", "forkserver", "spawn")

# The libraries read these when they are loaded, so they must be set before the process starts.
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
        """Return None while it runs, else its exit code; negative for the signal that ended it."""

    def wait(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` seconds until it has ended; return whether it has."""


def start_process(
    method: StartMethod, threads: int | None, recipe: Any = None
) -> tuple[Process, MessageSocket]:
    """Start a worker, and return it with the caller's end of the connection to it.

    Args:
        method: How to start it.
        threads: How many threads libraries such as OpenBLAS may use in it; None for no limit.
        recipe: The recipe of a forked worker, which inherits it; other workers are sent theirs.
    """
    own_end, worker_end = socket.socketpair()
    try:
        with _limited_threads(threads):
            if method == "fresh":
                process: Process = _Interpreter(worker_end)
            elif method == "fork":
                process = _Fork(worker_end, recipe)
            else:
                process = _MultiprocessingChild(method, worker_end)
    except BaseException:
        own_end.close()
        raise
    finally:
        worker_end.close()
    return process, MessageSocket(own_end, reads_while_sending=True)


def kill(process: Process) -> None:
    """Kill a process, with the processes that its environments have started in its group."""
    if process.exit_code() is not None:
        return
    try:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has ended since the check
        return


class _Interpreter:
    """A new interpreter that runs only the worker's main function."""

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
            start_new_session=True,  # Ctrl-C is for the caller only
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
    """A copy of this process that runs only the worker's main function.

    Not started by :mod:`multiprocessing`, which would end it when any other fork of this process
    exits.
    """

    def __init__(self, end: socket.socket, recipe: Any) -> None:
        self._code: int | None = None
        self._is_reaped = False
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
        # Read and reaped in two calls: an interrupt between them does not lose the exit code.
        if self._code is None:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return None
            was_signaled = ended.si_code != os.CLD_EXITED
            self._code = -ended.si_status if was_signaled else ended.si_status
        if not self._is_reaped:
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self._is_reaped = True
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
            # The parent of a forkserver's child is the server, not the caller.
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
    """Set the thread limit in the environment of processes that are started in this context."""
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
