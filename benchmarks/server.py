"""The process of one contender: steps environments on request.

Started by ``benchmarks.process`` as ``python -m benchmarks.server PICKLE``, in the contender's
environment, with the contender's pickle in hexadecimal digits. Requests and replies are lines of
JSON, one reply to each request: ``{"do": "step", "seconds": 0.25}`` gets ``{"result": ...}`` or
``{"error": "one line"}``.
"""

from __future__ import annotations

import json
import os
import pickle
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TextIO

from benchmarks.contenders.base import Contender, Vector
from benchmarks.workloads import WORKLOADS

_WARM_UP_SECONDS = 0.05
_WARM_UP_SHARE = 0.1


class Session:
    """What can be requested of a contender. One vector at most is open at any time."""

    def __init__(self, contender: Contender) -> None:
        self._contender = contender
        self._vector: Vector | None = None
        self.requests: dict[str, Callable[..., Any]] = {
            "versions": self.versions,
            "open": self.open,
            "step": self.step,
            "close": self.close,
        }

    def versions(self) -> dict[str, str]:
        """Tell the versions of Python and of the contender's packages."""
        packages = {package: version(package) for package in self._contender.packages}
        return {"python": platform.python_version(), **packages}

    def open(self, workload: str, num_envs: int) -> str:
        """Make environments and step them for a moment; returns the vector's note."""
        self._vector = self._contender.open(WORKLOADS[workload], num_envs)
        self._vector.step_many(_WARM_UP_SECONDS)
        return self._vector.note

    def step(self, seconds: float) -> tuple[int, float]:
        """Step the open vector; returns environment steps and the seconds that they took.

        Others ran since the last request, so a part of the time is spent first to get back caches
        and wake workers, and is not counted.
        """
        if self._vector is None:
            raise RuntimeError("no vector is open")
        self._vector.step_many(seconds * _WARM_UP_SHARE)
        return self._vector.step_many(seconds)

    def close(self) -> None:
        """Close the vector, where one is open."""
        if self._vector is not None:
            vector, self._vector = self._vector, None
            vector.close()


def serve(session: Session, requests: TextIO, replies: TextIO) -> None:
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
    serve(Session(pickle.loads(bytes.fromhex(sys.argv[1]))), *streams)
