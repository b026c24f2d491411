"""The main module of a contender's process: serves requests over standard input and output.

``shoal._bench.process`` runs this file by its path with two arguments: the module search path as
JSON, and a pickled factory of the session in hexadecimal digits. Requests and replies are lines of
JSON, one reply per request: the reply to ``{"do": "step", "seconds": 0.25}`` is either
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
    """Handles requests, each with the function of that name."""

    @property
    def requests(self) -> Mapping[str, Callable[..., Any]]:
        """The functions, by name."""

    def close(self) -> object:
        """Called once, after the last request."""


def serve(session: Service, requests: TextIO, replies: TextIO) -> None:
    """Handle requests until the stream ends."""
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
    """Put ``path`` first in the module search path.

    ``shoal`` is the package's folder if the package cannot be imported here. An empty package
    replaces it then, so that modules which need nothing else of Shoal can be imported.
    """
    sys.path[:] = [*path, *(entry for entry in sys.path if entry not in path)]
    if shoal is not None:
        package = ModuleType("shoal")
        package.__path__ = [shoal]
        sys.modules["shoal"] = package


def _claim_standard_streams() -> tuple[TextIO, TextIO]:
    """Reserve standard input and output for the protocol, and return them.

    Output that an environment or a library prints goes to standard error.
    """
    requests, replies = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, replies


if __name__ == "__main__":
    streams = _claim_standard_streams()
    _find_modules(**json.loads(sys.argv[1]))
    serve(pickle.loads(bytes.fromhex(sys.argv[2]))(), *streams)
