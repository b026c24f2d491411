"""How long Stable-Baselines3's PPO learns CartPole, with its own vectors and with Shoal's."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from benchmarks.alone import call_alone
from benchmarks.render import failure_notes
from shoal._bench.contenders.base import SEED
from shoal._bench.process import ContenderError
from shoal._bench.results import Cell, summarize
from shoal._bench.tables import Table, plain

__all__ = [
    "NUM_ENVS",
    "PPO",
    "TRAINING_LEGEND",
    "Training",
    "TrainingRun",
    "TrainingSettings",
    "measure_training",
    "rotated",
    "train",
    "training_table",
]

PPO = "PPO"
"""The name of the workload."""
NUM_ENVS = 8

TRAINING_LEGEND = (
    "PPO learns CartPole-v1, every run in a process of its own. Learn and construct: the medians "
    "of their wall-clock seconds, plus or minus half the distance between the quartiles. Return: "
    "the mean of the last hundred episodes. x: how many times faster Shoal's vector of the same "
    "kind makes learn, the median over rounds of the ratio within a round."
)

_COUNTERPARTS = {"sb3-dummy": "shoal-sb3-dummy", "sb3-subproc": "shoal-sb3-subproc"}

_ENV_ID = "CartPole-v1"

_SB3 = ("stable_baselines3.common.env_util", "stable_baselines3.common.vec_env")
_SHOAL = ("shoal.sb3", "shoal.sb3")


class _Vectors(NamedTuple):
    """Where ``make_vec_env`` and the vector's class are, and how that is called."""

    modules: tuple[str, str]
    class_name: str


_VECTORS = {
    "shoal-sb3-dummy": _Vectors(_SHOAL, "DummyVecEnv"),
    "sb3-dummy": _Vectors(_SB3, "DummyVecEnv"),
    "shoal-sb3-subproc": _Vectors(_SHOAL, "SubprocVecEnv"),
    "sb3-subproc": _Vectors(_SB3, "SubprocVecEnv"),
}


@dataclass(frozen=True)
class TrainingSettings:
    """How training is measured."""

    rounds: int = 5
    steps: int = 100_000
    """How many environment steps to learn from; PPO takes whole rollouts, so some more."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of PPO that are not its defaults."""

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.rounds} rounds of {self.steps} steps; {options or 'the defaults of PPO'}"


class TrainingRun(NamedTuple):
    """What one training took, in seconds, and what came of it."""

    construction: float
    """From ``make_vec_env`` until every environment is there."""
    learning: float
    """The call of ``learn``."""
    steps: int
    mean_return: float
    """Over the last hundred episodes: equal work has equal results."""


class Training:
    """Trains with some contenders' vectors, round by round, one after the other.

    Every run has a process of its own, and whatever threads PyTorch takes by default.
    """

    def __init__(self, settings: TrainingSettings | None = None) -> None:
        self.settings = settings or TrainingSettings()
        self.runs: dict[str, list[TrainingRun]] = {}
        """The runs of each contender that did not fail, a run for every round."""

    def measure(self, workload: str, num_envs: int, names: Collection[str]) -> Cell:
        """Train in all rounds, and say which run is next; rates are those of ``learn``."""
        running = [name for name in _VECTORS if name in names]
        cell = Cell(workload, num_envs, running.copy())
        self.runs = {name: [] for name in running}
        rounds = self.settings.rounds
        for turn in range(rounds):
            for name in rotated(list(self.runs), turn):
                print(f"{workload}, round {turn + 1}/{rounds}: {name}", file=sys.stderr, flush=True)
                try:
                    self.runs[name].append(call_alone(train, name, num_envs, self.settings))
                except ContenderError as error:
                    cell.failures[name] = str(error)
                    del self.runs[name]
        cell.rates = {
            name: [run.steps / run.learning for run in runs] for name, runs in self.runs.items()
        }
        return cell

    def as_json(self) -> dict[str, Any]:
        """Give the settings and every run, as plain data."""
        return {
            "rounds": self.settings.rounds,
            "steps": self.settings.steps,
            "options": dict(self.settings.options),
            "runs": {name: [run._asdict() for run in runs] for name, runs in self.runs.items()},
        }


def measure_training(settings: TrainingSettings) -> bool:
    """Train with every vector and print a table; returns whether none has failed."""
    training = Training(settings)
    cell = training.measure(PPO, NUM_ENVS, _VECTORS)
    print(f"{plain(training_table(cell, training.runs))}\n\n{fill(TRAINING_LEGEND, 100)}")
    for note in failure_notes([cell]):
        print(note)
    return not cell.failures


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """Put names in the order of a round: each is the first, and each the last, equally often."""
    first = turn % len(names) if names else 0
    return [*names[first:], *names[:first]]


def train(name: str, num_envs: int, settings: TrainingSettings) -> TrainingRun:
    """Train once, in this process, with a contender's vector."""
    import stable_baselines3

    (makers, classes), class_name = _VECTORS[name]
    make_vec_env = import_module(makers).make_vec_env
    vec_env_class = getattr(import_module(classes), class_name)
    start = time.perf_counter()
    envs = make_vec_env(_ENV_ID, n_envs=num_envs, seed=SEED, vec_env_cls=vec_env_class)
    construction = time.perf_counter() - start
    try:
        options = {"seed": SEED, "device": "cpu", **settings.options}
        model = stable_baselines3.PPO("MlpPolicy", envs, **options)
        start = time.perf_counter()
        model.learn(settings.steps)
        learning = time.perf_counter() - start
    finally:
        envs.close()
    returns = [episode["r"] for episode in model.ep_info_buffer or ()]
    return TrainingRun(construction, learning, model.num_timesteps, float(np.mean(returns)))


def training_table(cell: Cell, runs: Mapping[str, Sequence[TrainingRun]]) -> Table:
    """Lay out trainings, a row for each contender."""
    rows = []
    for name in cell.contenders:
        if name not in runs:
            rows.append([name, "failed", "", "", ""])
            continue
        ratio = cell.ratio(name, _COUNTERPARTS[name]) if name in _COUNTERPARTS else None
        rows.append(
            [
                name,
                _seconds_text([run.learning for run in runs[name]]),
                _seconds_text([run.construction for run in runs[name]]),
                f"{np.median([run.mean_return for run in runs[name]]):.1f}",
                "" if ratio is None else f"{ratio:.2f}",
            ]
        )
    header = [f"{cell.workload} x {cell.num_envs}", "learn, s", "construct, s", "return", "x"]
    return Table(header, rows)


def _seconds_text(seconds: Sequence[float]) -> str:
    summary = summarize(seconds)
    return f"{summary.median:.2f} ±{summary.spread:3.0%}"
