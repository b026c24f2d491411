"""What it costs to be watched: the same vector, shown on a page that somebody looks at, and not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from random import Random
from textwrap import dedent, fill
from typing import Any, NamedTuple

import shoal
from benchmarks.files import write_results
from benchmarks.judging import Figure, Verdict, verdict_table
from benchmarks.render import markdown_document
from benchmarks.workloads import WORKLOADS
from shoal._bench import machine
from shoal._bench.contenders.base import Lockstep, open_lockstep
from shoal._bench.results import Report, paired_ratio, summarize
from shoal._bench.runner import Settings
from shoal._bench.tables import Table, markdown, plain
from shoal.live import show

__all__ = ["measure_live"]

_AT_LEAST = 0.98


class _Place(NamedTuple):
    """A vector that is watched."""

    title: str
    workload: str
    num_envs: int
    make: Callable[..., Any]


_PLACES = (
    _Place(
        "CartPole-v1 in Python, inline",
        "cartpole",
        8,
        partial(shoal.make, "CartPole-v1", backend="inline", render_mode="rgb_array"),
    ),
    _Place("CartPole-v1, kernel", "cartpole", 1024, partial(shoal.make, "CartPole-v1")),
    _Place("hockey, kernel", "hockey", 256, partial(shoal.make, "shoal/Hockey-v0")),
    _Place(
        "1 ms of Python, processes", "burn1ms", 8, partial(shoal.make, WORKLOADS["burn1ms"].make)
    ),
    _Place("Pong, processes", "pong", 8, partial(shoal.make, "ALE/Pong-v5")),
)

_VISITOR = """
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

_LEGEND = (
    "How fast a vector is while it is shown on a page and somebody looks at all pictures, next to "
    "the same vector in the same process without: the median over rounds of the ratio within a "
    "round, and its quartiles. Who looks is another process on the same machine."
)


def measure_live(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``live`` as JSON and Markdown.

    Returns whether watching costs as little as it may.
    """
    verdicts, rows, cells = [], [], []
    for place in _PLACES:
        print(f"{place.title}, {place.num_envs} slots", file=sys.stderr, flush=True)
        watched, alone = _rates(place, settings)
        quartiles = summarize([one / other for one, other in zip(watched, alone, strict=True)])
        what = f"{place.title}, {place.num_envs} slots: watched, times unwatched"
        figure = Figure(what, lambda _: None, at_least=_AT_LEAST)
        verdicts.append(Verdict(figure, paired_ratio(watched, alone)))
        rows.append([what, f"{quartiles.lower:.3f} to {quartiles.upper:.3f}"])
        cells.append({"place": what, "watched": watched, "alone": alone})
    report = Report(machine.describe(), asdict(settings), {}, [])
    data = {
        **report.as_json(),
        "figures": [verdict.as_json() for verdict in verdicts],
        "rates": cells,
    }
    tables = [verdict_table(verdicts), Table(["", "quartiles"], rows)]
    print("\n\n".join([*map(plain, tables), fill(_LEGEND, width=100)]))
    parts = [*map(markdown, tables), _LEGEND]
    write_results(output, "live", data, markdown_document("Live", report, *parts))
    return all(verdict.reached for verdict in verdicts)


def _rates(place: _Place, settings: Settings) -> tuple[list[float], list[float]]:
    """Steps per second of each round, watched and not."""
    envs = place.make(num_envs=place.num_envs)
    vector = open_lockstep(envs, WORKLOADS[place.workload])
    pool, order = envs.pool, Random(0)
    rates: dict[bool, list[float]] = {True: [], False: []}
    try:
        with show(envs, port=0) as page, _visited(page.url):
            watched = envs.pool
            for _ in range(settings.rounds + 1):
                for is_watched in order.sample([True, False], 2):
                    envs.pool = watched if is_watched else pool
                    rates[is_watched].append(_rate(vector, settings.seconds))
            envs.pool = watched
    finally:
        vector.close()
    # In the first round somebody has to come and look first.
    return rates[True][1:], rates[False][1:]


def _rate(vector: Lockstep, seconds: float) -> float:
    steps, elapsed = vector.step_many(seconds)
    return steps / elapsed


@contextmanager
def _visited(url: str) -> Iterator[None]:
    visitor = subprocess.Popen([sys.executable, "-c", dedent(_VISITOR), url])
    try:
        yield
    finally:
        visitor.kill()
        visitor.wait()
