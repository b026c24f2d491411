"""TorchRL's collector on Shoal, next to TorchRL's own environments."""

from __future__ import annotations

from pathlib import Path

from benchmarks.contenders.torchrl_collectors import (
    FRAMES_PER_SLOT,
    POLICIES,
    STEPPERS,
    Collecting,
)
from benchmarks.judging import times
from benchmarks.required import measure_required
from shoal._bench.runner import Settings

__all__ = ["REQUIRED", "measure_torchrl"]

_WORKLOAD, _SLOTS = "cartpole", 8

_BOUNDS = (
    ("shoal", "torchrl-parallel", 3.0),
    ("shoal", "torchrl-serial", 1.0),
    ("shoal", "torchrl-gym-env", 1.0),
    ("shoal", "shoal-in-gym-wrapper", 1.0),
    ("shoal-python", "torchrl-serial", 1.0),
)

REQUIRED = tuple(
    times(f"{ours}, {policy}", f"{rival}, {policy}", _WORKLOAD, _SLOTS, at_least=at_least)
    for policy in POLICIES
    for ours, rival, at_least in _BOUNDS
)

_LEGEND = (
    f"TorchRL's Collector on {_SLOTS} CartPoles, {FRAMES_PER_SLOT} steps of each to a batch, one "
    "thread of PyTorch; 'random': the collector draws the actions, 'mlp': a network of two layers "
    "of 64 chooses them. shoal is shoal.torchrl.make with its kernel, shoal-python with the Python "
    "environments in the calling process, shoal-in-gym-wrapper a vector of Shoal's in TorchRL's "
    "GymWrapper. torchrl-parallel is ParallelEnv, torchrl-serial SerialEnv, both of GymEnv; "
    "torchrl-gym-env is GymEnv with num_envs, which is Gymnasium's AsyncVectorEnv."
)


def measure_torchrl(settings: Settings, output: Path) -> bool:
    """Measure, print tables, and write ``torchrl`` as JSON and Markdown.

    Returns whether the required figures were reached.
    """
    return measure_required(
        "torchrl",
        REQUIRED,
        _LEGEND,
        settings,
        output,
        title="TorchRL",
        contenders=[Collecting(stepper, policy) for policy in POLICIES for stepper in STEPPERS],
    )
