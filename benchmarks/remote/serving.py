"""Servers in separate processes.

Such a process is ``python -m benchmarks.remote.serving PICKLE``, with the pickle of a function and
its arguments in hexadecimal digits. It writes the pickle of its address to standard output and
ends when its standard input is closed.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Thread
from typing import IO, Any, Generic, TypeAlias, TypeVar

from benchmarks import ROOT
from shoal._bench.process import ContenderError, kill_group

__all__ = ["LOCALHOST", "Announce", "Client", "served"]

LOCALHOST = "127.0.0.1"

Announce: TypeAlias = Callable[[Any], None]
"""Reports the server's address to the client."""

Connection = TypeVar("Connection")


@contextmanager
def served(serve: Callable[..., None], *arguments: object) -> Iterator[Any]:
    """Run a server while the context is open; the context's value is the server's address.

    Args:
        serve: A picklable function, called as ``serve(announce, *arguments)``.
        arguments: Its other arguments.
    """
    call = pickle.dumps((serve, arguments)).hex()
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.remote.serving", call],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,
    ) as process:
        assert process.stdout is not None
        try:
            yield _address(process.stdout)
        finally:
            kill_group(process)


class Client(Generic[Connection]):
    """A connection and the server that it starts; ``close`` ends both.

    Args:
        connect: Connects to the server's address.
        serve: The server; see ``served``.
        arguments: Its other arguments.
    """

    def __init__(
        self,
        connect: Callable[[Any], AbstractContextManager[Connection]],
        serve: Callable[..., None],
        *arguments: object,
    ) -> None:
        with ExitStack() as resources:
            address = resources.enter_context(served(serve, *arguments))
            self._connection = resources.enter_context(connect(address))
            self._resources = resources.pop_all()

    def close(self) -> None:
        """Disconnect and end the server; a second call does nothing."""
        self._resources.close()


def _address(output: IO[bytes]) -> Any:
    try:
        return pickle.load(output)
    except EOFError:
        raise ContenderError("the server ended before it listened") from None


def _announce(address: Any) -> None:
    pickle.dump(address, sys.stdout.buffer)
    sys.stdout.flush()


def _end_with_client() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(0)


if __name__ == "__main__":
    # A killed client cannot end its server, but the operating system closes the pipe.
    Thread(target=_end_with_client, daemon=True).start()
    function, others = pickle.loads(bytes.fromhex(sys.argv[1]))
    function(_announce, *others)
