"""The process of a contender, seen from the runner."""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from shoal._bench.server import Service

__all__ = [
    "ContenderError",
    "Interpreter",
    "ServiceProcess",
    "current_interpreter",
    "kill_group",
    "last_line",
]

_SERVER = Path(__file__).with_name("server.py")


class ContenderError(Exception):
    """A contender failed; the message is the reason, in one line."""


@dataclass(frozen=True)
class Interpreter:
    """The Python interpreter that a process runs."""

    python: Path
    path: tuple[str, ...]
    """Folders that come first in its module search path."""
    has_shoal: bool = True
    """Whether Shoal can be imported; if not, only modules documented to work without it can be."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables."""


def current_interpreter() -> Interpreter:
    """Return the interpreter of this process."""
    return Interpreter(Path(sys.executable), tuple(os.path.abspath(entry) for entry in sys.path))


class ServiceProcess:
    """Runs a session in a separate process.

    The process runs only during ``request``. In between, its process group is stopped, because
    workers that spin while they wait would slow down the contender that is measured next. (Shoal's
    workers are in separate process groups: they sleep while idle, and exit with their parent.)
    After an exception from ``request`` the process and its children have been killed.

    Args:
        session: Creates the session in the process; must be picklable.
        interpreter: The interpreter to run.
        timeout: Seconds that a request may take, in addition to the seconds that it steps for.
    """

    def __init__(
        self, session: Callable[[], Service], interpreter: Interpreter, timeout: float
    ) -> None:
        self._timeout = timeout
        folder = None if interpreter.has_shoal else str(_SERVER.parents[1])
        modules = json.dumps({"path": interpreter.path, "shoal": folder})
        # A separate process group in the same session: Ctrl-C reaches only the runner, which cleans
        # up; if the runner is killed, the kernel sends SIGHUP to the stopped groups.
        with ExitStack() as resources:
            self._stderr = resources.enter_context(tempfile.TemporaryFile())
            self._process = resources.enter_context(
                subprocess.Popen(
                    # -P: do not add the server's folder to the module search path.
                    [interpreter.python, "-P", _SERVER, modules, pickle.dumps(session).hex()],
                    bufsize=0,
                    env={**os.environ, **interpreter.environment},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._stderr,
                    process_group=0,
                )
            )
            resources.callback(kill_group, self._process)
            self._exit = os.pidfd_open(self._process.pid)
            resources.callback(os.close, self._exit)
            self._resources = resources.pop_all()

    def request(self, do: str, **arguments: Any) -> Any:
        """Send a request to the session, and return its result."""
        try:
            os.killpg(self._process.pid, signal.SIGCONT)
            reply = self._exchange({"do": do, **arguments})
            if "error" in reply:
                raise ContenderError(reply["error"])
            os.killpg(self._process.pid, signal.SIGSTOP)
        except BaseException:
            self.kill()
            raise
        return reply["result"]

    def kill(self) -> None:
        """Kill the process and its children. Further calls have no effect."""
        self._resources.close()

    def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None
        assert replies is not None
        try:
            requests.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise self._died() from None
        timeout = self._timeout + request.get("seconds", 0.0)
        # Workers may hold the pipe open, so the end of the stream alone does not signal an exit.
        sources: list[IO[bytes] | int] = [replies, self._exit]
        ready, _, _ = select.select(sources, [], [], timeout)
        if not ready:
            raise ContenderError(f"no answer to {request['do']!r} within {timeout:g} s")
        line = replies.readline() if replies in ready else b""
        if not line:
            raise self._died()
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _died(self) -> ContenderError:
        kill_group(self._process)
        status = self._process.returncode
        reason = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        return ContenderError(f"died ({reason}): {last_line(lines)}")


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process that leads a process group, with its group. Further calls have no effect."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_line(lines: Iterable[str]) -> str:
    """Return the last line of a program's output that is not blank."""
    return next((line.strip() for line in reversed(list(lines)) if line.strip()), "no output")
