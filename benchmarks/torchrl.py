"""TorchRL's collector on Shoal, next to TorchRL's own environments."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.contenders.torchrl_collectors import (
    FRAMES_PER_SLOT,
    POLICIES,
    STEPPERS,
    Collecting,
)
from benchmarks.judging import Bench, Contest, Verdict, judge, times
from benchmarks.results import Cell
from benchmarks.runner import Runner, Settings

__all__ = ["LEGEND", "REQUIRED", "Measured", "measure_torchrl"]

_WORKLOAD, _SLOTS = "cartpole", 8

REQUIRED = {
    policy: times(f"shoal, {policy}", f"torchrl-parallel, {policy}", _WORKLOAD, _SLOTS, at_least=3)
    for policy in POLICIES
}
"""What must be reached with each policy."""

LEGEND = (
    f"TorchRL's Collector on {_SLOTS} CartPoles, {FRAMES_PER_SLOT} steps of each to a batch, one "
    "thread of PyTorch; 'random': the collector draws the actions, 'mlp': a network of two layers "
    "of 64 chooses them. shoal is shoal.torchrl.make with its kernel, shoal-python with the Python "
    "environments in the calling process, shoal-in-gym-wrapper a vector of Shoal's in TorchRL's "
    "GymWrapper. torchrl-parallel is ParallelEnv, torchrl-serial SerialEnv, both of GymEnv; "
    "torchrl-gym-env is GymEnv with num_envs, which is Gymnasium's AsyncVectorEnv."
)


class Measured(NamedTuple):
    """Rates of all contenders, a cell for each policy; whether they suffice; what was installed."""

    cells: list[Cell]
    verdicts: list[Verdict]
    versions: dict[str, dict[str, str]]


def measure_torchrl(settings: Settings) -> Measured:
    """Measure the collector on each of the environments, in turn, with one policy and the other."""
    measured = Measured([], [], {})
    for policy, figure in REQUIRED.items():
        contenders = [Collecting(stepper, policy) for stepper in STEPPERS]
        contest = Contest(_WORKLOAD, _SLOTS, tuple(each.name for each in contenders))
        with Runner(contenders, settings) as runner:
            bench = Bench(runner, [contest])
            measured.verdicts.extend(judge([figure], bench))
        measured.cells.extend(bench.cells.values())
        measured.versions.update(runner.versions)
    return measured
