"""The contenders of each cell of the group ``remote``."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np

from benchmarks.remote.baselines import (
    Baseline,
    GrpcVector,
    GymApiJsonVector,
    PingPong,
    WebsocketVector,
)
from benchmarks.remote.null import NUM_SLOTS
from benchmarks.remote.scenarios import Groups, RecvBesideSlow
from benchmarks.remote.shoal_vectors import Observation, ShoalVector, Transport
from benchmarks.turns import Measuring, Sampler, Samplers

__all__ = ["StepTime", "samplers"]

_TRANSPORTS: dict[str, Transport] = {
    "shoal-tcp": "tcp",
    "shoal-unix": "unix",
    "shoal-shared-memory": "shared memory",
}

_WARM_UP_SHARE = 0.25
"""The share of a round's time that is spent before the measurement: the system first has to settle
which process runs on which core."""


class StepTime(Sampler):
    """The median time of a step in microseconds."""

    def __init__(self, make: Callable[[], Baseline]) -> None:
        self._vector = make()

    def sample(self, seconds: float) -> float:
        """Step for this time."""
        self._step_times(_WARM_UP_SHARE * seconds)
        return median(self._step_times(seconds)) * 1e6

    def close(self) -> None:
        """Disconnect and end the server."""
        self._vector.close()

    def _step_times(self, seconds: float) -> list[float]:
        actions = np.zeros(NUM_SLOTS, np.int64)
        times: list[float] = []
        end = start = time.perf_counter()
        while not times or end - start < seconds:
            before = time.perf_counter()
            self._vector.step(actions)
            end = time.perf_counter()
            times.append(end - before)
        return times


def samplers(workload: str, size: int, settings: Measuring) -> Samplers:  # noqa: ARG001
    """Return the makers of all samplers of a cell; there are always ``NUM_SLOTS`` slots."""
    makers: dict[str, Samplers] = {
        "remote-step": {
            "bare-tcp": partial(StepTime, partial(PingPong, "tcp")),
            "bare-unix": partial(StepTime, partial(PingPong, "unix")),
            **_shoal_step_times("numbers"),
            "grpc": partial(StepTime, GrpcVector),
            "websockets": partial(StepTime, WebsocketVector),
            "json": partial(StepTime, GymApiJsonVector),
        },
        "remote-image": _shoal_step_times("images"),
        "recv-beside-slow": {"shoal-tcp": RecvBesideSlow},
        "two-groups": {
            "one group": partial(Groups, in_flight=1),
            "two groups": partial(Groups, in_flight=2),
        },
    }
    return makers[workload]


def _shoal_step_times(observation: Observation) -> Samplers:
    return {
        name: partial(StepTime, partial(ShoalVector, transport, observation))
        for name, transport in _TRANSPORTS.items()
    }
