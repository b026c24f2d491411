"""Remote vectors next to bare sockets and to what others would use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from textwrap import fill

import numpy as np

from benchmarks.files import write_results
from benchmarks.judging import Bench, Figure, judge, verdict_table
from benchmarks.remote.baselines import (
    Baseline,
    GrpcVector,
    GymApiJsonVector,
    PingPong,
    WebsocketVector,
)
from benchmarks.remote.null import NUM_SLOTS
from benchmarks.remote.shoal_vectors import ShoalVector, Way
from benchmarks.remote.situations import milliseconds_beside_slow_slots, worth_of_two_groups
from benchmarks.render import markdown_document
from benchmarks.runner import Runner
from shoal._bench import machine
from shoal._bench.results import Report, summarize
from shoal._bench.runner import Settings
from shoal._bench.tables import Table, markdown, plain

__all__ = ["measure_remote"]

_WAYS: tuple[Way, ...] = ("tcp", "unix", "shared memory")
_BARE = {"tcp": "bare tcp", "unix": "bare unix", "shared memory": "bare unix"}
_OTHERS = {"grpc": 5.0, "websockets": 3.0, "json": 40.0}
"""How many times faster than each of them a step must be."""

_WARM_UP = 0.25
"""The part of a round that is not measured: the system finds out who runs on which core."""

Makers = Mapping[str, Callable[[], Baseline]]
Medians = dict[str, list[float]]

_LEGEND = (
    f"Microseconds of one batched step of {NUM_SLOTS} slots that do nothing, in a server process "
    "of its own, on one machine; each round gives the median of a contender's steps, and the table "
    "the median and the quartiles of the rounds, which are interleaved. 'bare' is a ping-pong of "
    "as many bytes over a socket, in Python, without any encoding. 'pictures' are observations of "
    "4 x 84 x 84 bytes. Ratios are of paired rounds."
)


def _numbers() -> Makers:
    return {
        "bare tcp": partial(PingPong, "tcp"),
        "bare unix": partial(PingPong, "unix"),
        **{f"shoal {way}": partial(ShoalVector, way) for way in _WAYS},
        "grpc": GrpcVector,
        "websockets": WebsocketVector,
        "json": GymApiJsonVector,
    }


def _pictures() -> Makers:
    return {f"pictures, shoal {way}": partial(ShoalVector, way, "pictures") for way in _WAYS}


@contextmanager
def _opened(makers: Makers) -> Iterator[dict[str, Baseline]]:
    with ExitStack() as stack:
        opened: dict[str, Baseline] = {}
        for name, make in makers.items():
            opened[name] = contender = make()
            stack.callback(contender.close)
        yield opened


def _medians(makers: Makers, settings: Settings) -> Medians:
    """Microseconds of a step, by contender and round."""
    found: Medians = {name: [] for name in makers}
    with _opened(makers) as contenders:
        for _ in range(settings.rounds):
            for name, contender in contenders.items():
                _step_times(contender, _WARM_UP * settings.seconds)
                found[name].append(median(_step_times(contender, settings.seconds)) * 1e6)
    return found


def _step_times(contender: Baseline, seconds: float) -> list[float]:
    """How long each step takes, of as many as there are in so much time."""
    actions = np.zeros(NUM_SLOTS, np.int64)
    taken = []
    end = begun = time.perf_counter()
    while end - begun < seconds:
        before = time.perf_counter()
        contender.step(actions)
        end = time.perf_counter()
        taken.append(end - before)
    return taken


def _ratio(medians: Medians, slower: str, faster: str) -> float:
    return float(np.median(np.divide(medians[slower], medians[faster])))


def measure_remote(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``remote`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    here = machine.describe()
    medians = _medians(_numbers(), settings) | _medians(_pictures(), settings)
    pictures = "pictures, shoal tcp", "pictures, shoal shared memory"
    figures = [
        *(
            Figure(
                f"a step over {way}, times {_BARE[way]}",
                lambda _, way=way: _ratio(medians, f"shoal {way}", _BARE[way]),  # type: ignore[misc]
                at_most=2.0,
            )
            for way in _WAYS
        ),
        *(
            Figure(
                f"a step over {way}, times faster than {other}",
                lambda _, way=way, other=other: _ratio(medians, other, f"shoal {way}"),  # type: ignore[misc]
                at_least,
            )
            for way in _WAYS
            for other, at_least in _OTHERS.items()
        ),
        Figure(
            "pictures over shared memory, times faster than tcp",
            lambda _: _ratio(medians, *pictures),
            5.0,
        ),
        Figure(
            "recv of 60 slots beside 4 slow ones, ms",
            lambda _: milliseconds_beside_slow_slots(settings.rounds),
            at_most=20.0,
        ),
        Figure(
            "two groups in flight, 10 ms away, times one",
            lambda _: worth_of_two_groups(settings.rounds, steps=20, delay=0.01),
            1.7,
        ),
    ]
    verdicts = judge(figures, Bench(Runner([], settings), []))
    rows = [[name, _spread(values)] for name, values in medians.items()]
    tables = [verdict_table(verdicts), Table(["", "us a step"], rows)]
    versions = {"remote": {name: version(name) for name in ("grpcio", "websockets", "msgspec")}}
    report = Report(here, asdict(settings), versions, [])
    data = {
        **report.as_json(),
        "figures": [verdict.as_json() for verdict in verdicts],
        "microseconds": medians,
    }
    print("\n\n".join([*map(plain, tables), fill(_LEGEND, width=100)]))
    document = markdown_document("Remote", report, *map(markdown, tables), _LEGEND)
    write_results(output, "remote", data, document)
    return all(verdict.reached for verdict in verdicts)


def _spread(values: list[float]) -> str:
    middle, lower, upper = summarize(values)
    return f"{middle:.0f} ({lower:.0f} to {upper:.0f})"
