"""A contender's process, as the runner sees it."""

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
    """A contender could not do what was asked; the message is the reason, in one line."""


@dataclass(frozen=True)
class Interpreter:
    """Where a process runs."""

    python: Path
    path: tuple[str, ...]
    """Where it looks for modules, before it looks where this interpreter does."""
    has_shoal: bool = True
    """Whether Shoal can be imported there. If not, only those of its modules can be that say so."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables besides those of this process."""


def current_interpreter() -> Interpreter:
    """Where this process runs itself."""
    return Interpreter(Path(sys.executable), tuple(os.path.abspath(place) for place in sys.path))


class ServiceProcess:
    """Runs a session in an interpreter of its own.

    It runs during ``request`` only: outside, its process group is stopped, because workers that
    wait for work by spinning would slow down whoever is measured next. After any exception from
    ``request`` the process is gone, with everything that it started. (Shoal's workers lead groups
    of their own: they sleep while there is no work, and end with the process that they work for.)

    Args:
        session: Makes the session there; travels by pickle.
        home: Where to run.
        timeout: Seconds that a request may take, beyond those that it asks to step for.
    """

    def __init__(self, session: Callable[[], Service], home: Interpreter, timeout: float) -> None:
        self._timeout = timeout
        folder = None if home.has_shoal else str(_SERVER.parents[1])
        modules = json.dumps({"path": home.path, "shoal": folder})
        # A process group of its own, in this session: Ctrl-C reaches the runner alone, which cleans
        # up, and should the runner be killed itself, the kernel hangs up on stopped groups.
        with ExitStack() as resources:
            self._stderr = resources.enter_context(tempfile.TemporaryFile())
            self._process = resources.enter_context(
                subprocess.Popen(
                    # Without -P, the server's neighbours would be modules that anybody may import.
                    [home.python, "-P", _SERVER, modules, pickle.dumps(session).hex()],
                    bufsize=0,
                    env={**os.environ, **home.environment},
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
        """Have something done by the session, and return its result."""
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
        """End the process and all that it started; a second call does nothing."""
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
        # Workers may hold the other end of the pipe open, so its end alone does not tell of death.
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
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        return ContenderError(f"died ({how}): {last_line(lines)}")


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process that leads a process group, and all of the group; once more does nothing."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_line(lines: Iterable[str]) -> str:
    """Find the last line of a program's output that is not blank."""
    return next((line.strip() for line in reversed(list(lines)) if line.strip()), "no output")
