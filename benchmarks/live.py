"""The cost of a live page: the same vector with a page that is read, and without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from textwrap import dedent
from typing import Any, NamedTuple

import shoal
from benchmarks.turns import Measuring, Sampler, Samplers
from benchmarks.workloads import WORKLOADS
from shoal._bench.contenders.base import open_lockstep
from shoal.live import show

__all__ = ["VECTORS", "samplers"]


class _Vector(NamedTuple):
    workload: str
    """The name of the workload whose actions are sampled."""
    make: Callable[..., Any]


VECTORS = {
    "live-cartpole-inline": _Vector(
        "cartpole",
        partial(shoal.make, "CartPole-v1", backend="inline", render_mode="rgb_array"),
    ),
    "live-cartpole-kernel": _Vector("cartpole", partial(shoal.make, "CartPole-v1")),
    "live-hockey-kernel": _Vector("hockey", partial(shoal.make, "shoal/Hockey-v0")),
    "live-burn1ms-process": _Vector("burn1ms", partial(shoal.make, WORKLOADS["burn1ms"].make)),
    "live-pong-process": _Vector("pong", partial(shoal.make, "ALE/Pong-v5")),
}
"""The vector of each workload."""

_READER = """
    import http.client, json, sys, urllib.parse, urllib.request

    url, version = sys.argv[1], 0
    parts = urllib.parse.urlsplit(url)
    pictures = http.client.HTTPConnection(parts.netloc)
    for line in urllib.request.urlopen(url + "events"):
        if line.startswith(b"data: "):
            newest = json.loads(line[6:])["pictures"]["version"]
            pictures.request("GET", f"{parts.path}pictures?after={version}")
            pictures.getresponse().read()
            version = newest
"""


def samplers(workload: str, size: int, settings: Measuring) -> Samplers:
    """Return the makers of both samplers, which share one vector."""
    shared = _SharedVector(workload, size, settings.seconds)
    return {
        "watched": partial(_Side, shared, is_watched=True),
        "unwatched": partial(_Side, shared, is_watched=False),
    }


class _SharedVector:
    """A vector with a page that another process reads; opened by the first of its two sides."""

    def __init__(self, workload: str, num_envs: int, seconds: float) -> None:
        self._workload = workload
        self._num_envs = num_envs
        self._seconds = seconds
        self._resources = ExitStack()
        self._is_open = False

    def open(self) -> None:
        """Open the vector and the page, and step until the reader is connected."""
        if self._is_open:
            return
        self._is_open = True
        name, make = VECTORS[self._workload]
        self._envs = make(num_envs=self._num_envs)
        self._vector = open_lockstep(self._envs, WORKLOADS[name])
        self._resources.callback(self._vector.close)
        self._bare_pool = self._envs.pool
        page = self._resources.enter_context(show(self._envs, port=0))
        self._watched_pool = self._envs.pool
        self._resources.callback(setattr, self._envs, "pool", self._watched_pool)
        self._resources.enter_context(_reader(page.url))
        self._vector.step_many(max(1.0, self._seconds))

    def rate(self, seconds: float, *, is_watched: bool) -> float:
        """Return the steps per second with or without the page."""
        self._envs.pool = self._watched_pool if is_watched else self._bare_pool
        steps, elapsed = self._vector.step_many(seconds)
        return steps / elapsed

    def close(self) -> None:
        """Close the page and the vector; a second call does nothing."""
        self._resources.close()


class _Side(Sampler):
    def __init__(self, shared: _SharedVector, *, is_watched: bool) -> None:
        self._shared = shared
        self._is_watched = is_watched
        shared.open()

    def sample(self, seconds: float) -> float:
        """Return the steps per second."""
        return self._shared.rate(seconds, is_watched=self._is_watched)

    def close(self) -> None:
        """Close the shared vector."""
        self._shared.close()


@contextmanager
def _reader(url: str) -> Iterator[None]:
    """Run a process that reads the events and all pictures of a page."""
    process = subprocess.Popen([sys.executable, "-c", dedent(_READER), url])
    try:
        yield
    finally:
        process.kill()
        process.wait()
