"""PPO of Stable-Baselines3 on CartPole, with its own vectors and with Shoal's."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from benchmarks.alone import call_alone
from benchmarks.turns import Measuring, Sampler, Samplers
from shoal._bench.contenders.base import SEED

__all__ = ["VECTORS", "PPOTraining", "TrainingRun", "TrainingSettings", "samplers", "train"]

_ENV_ID = "CartPole-v1"
_SB3 = ("stable_baselines3.common.env_util", "stable_baselines3.common.vec_env")
_SHOAL = ("shoal.sb3", "shoal.sb3")


class _Vectors(NamedTuple):
    """The modules of ``make_vec_env`` and of the vector's class, and the name of that class."""

    modules: tuple[str, str]
    class_name: str


VECTORS = {
    "shoal-sb3-dummy": _Vectors(_SHOAL, "DummyVecEnv"),
    "sb3-dummy": _Vectors(_SB3, "DummyVecEnv"),
    "shoal-sb3-subproc": _Vectors(_SHOAL, "SubprocVecEnv"),
    "sb3-subproc": _Vectors(_SB3, "SubprocVecEnv"),
}
"""The vectors of the contenders."""


@dataclass(frozen=True)
class TrainingSettings:
    """How to train."""

    steps: int = 100_000
    """The minimum number of environment steps; PPO completes its last rollout."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of PPO that differ from its defaults."""


class TrainingRun(NamedTuple):
    """The duration and the result of one training run."""

    seconds: float
    """The time of ``learn``."""
    steps: int
    mean_return: float
    """Over the last hundred episodes; equal work has equal results."""


class PPOTraining(Sampler):
    """The environment steps per second of ``learn``, every time in a new process."""

    def __init__(self, name: str, num_envs: int) -> None:
        self._arguments = name, num_envs, TrainingSettings()

    def sample(self, seconds: float) -> float:  # noqa: ARG002
        """Train once."""
        run = call_alone(train, *self._arguments)
        return run.steps / run.seconds


def samplers(workload: str, size: int, settings: Measuring) -> Samplers:  # noqa: ARG001
    """Return the makers of all samplers of a cell."""
    return {name: partial(PPOTraining, name, size) for name in VECTORS}


def train(name: str, num_envs: int, settings: TrainingSettings) -> TrainingRun:
    """Train once in this process with a contender's vector."""
    import stable_baselines3

    (makers, classes), class_name = VECTORS[name]
    make_vec_env = import_module(makers).make_vec_env
    vec_env_class = getattr(import_module(classes), class_name)
    envs = make_vec_env(_ENV_ID, n_envs=num_envs, seed=SEED, vec_env_cls=vec_env_class)
    try:
        options = {"seed": SEED, "device": "cpu", **settings.options}
        model = stable_baselines3.PPO("MlpPolicy", envs, **options)
        start = time.perf_counter()
        model.learn(settings.steps)
        seconds = time.perf_counter() - start
    finally:
        envs.close()
    returns = [episode["r"] for episode in model.ep_info_buffer or ()]
    return TrainingRun(seconds, model.num_timesteps, float(np.mean(returns)))
