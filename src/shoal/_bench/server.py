"""The main module of a contender's process: serves requests over standard input and output.

``shoal._bench.process`` starts this file by its path with two arguments: the module search path as
JSON, and a factory of the session as a pickle in hexadecimal digits. Requests and replies are lines
of JSON, one reply per request: ``{"do": "step", "seconds": 0.25}`` is answered by
``{"result": ...}`` or ``{"error": "one line"}``.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Protocol, TextIO


class Service(Protocol):
    """Answers requests, each by a function of its name."""

    @property
    def requests(self) -> Mapping[str, Callable[..., Any]]:
        """The functions, by name."""

    def close(self) -> object:
        """Called once, after the last request."""


def serve(session: Service, requests: TextIO, replies: TextIO) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        request = json.loads(line)
        do = session.requests[request.pop("do")]
        try:
            reply = {"result": do(**request)}
        except Exception as error:
            reply = {"error": " ".join(f"{type(error).__name__}: {error}".split())}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    session.close()


def _find_modules(path: list[str], shoal: str | None) -> None:
    """Let modules be found in these places first.

    ``shoal``, where it is given, is the folder of a package that cannot be imported here. It
    becomes a mere name, so that those of its modules can be that need nothing else of it.
    """
    sys.path[:] = [*path, *(place for place in sys.path if place not in path)]
    if shoal is not None:
        package = ModuleType("shoal")
        package.__path__ = [shoal]
        sys.modules["shoal"] = package


def _claim_standard_streams() -> tuple[TextIO, TextIO]:
    """Keep standard input and output for the protocol.

    What an environment, or a library under it, prints goes to standard error.
    """
    requests, replies = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


if __name__ == "__main__":
    streams = _claim_standard_streams()
    _find_modules(**json.loads(sys.argv[1]))
    serve(pickle.loads(bytes.fromhex(sys.argv[2]))(), *streams)
