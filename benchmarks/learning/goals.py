"""The time in which the bundled configs reach their goals, from an untrained agent."""

from __future__ import annotations

import sys
import time
from functools import partial
from tempfile import TemporaryDirectory

from benchmarks.turns import Measuring, Sampler, Samplers
from shoal.train import load_agent, load_config, play_episodes, train_single_run

__all__ = ["Training", "samplers"]

_EPISODES = 100
_SEED = 1_000_000
"""The first seed of the episodes after training; no run is evaluated on them."""


def samplers(workload: str, size: int, settings: Measuring) -> Samplers:  # noqa: ARG001
    """Return the maker of the only sampler of a cell."""
    return {"shoal.train": partial(Training, workload)}


class Training(Sampler):
    """The seconds of a training run that ends at the config's ``stop_at_reward``.

    Each call uses the next seed, starting at 0.

    Raises:
        ValueError: The config has no ``stop_at_reward``.
    """

    def __init__(self, config: str) -> None:
        self._config = config
        self._seed = 0
        goal = load_config(config).training.stop_at_reward
        if goal is None:
            raise ValueError(f"the config {config} has no stop_at_reward")
        self._goal = goal

    def sample(self, seconds: float) -> float:  # noqa: ARG002
        """Train once.

        Raises:
            RuntimeError: The run or the saved agent did not reach the goal.
        """
        seed, self._seed = self._seed, self._seed + 1
        print(f"  {self._config}, seed {seed}", file=sys.stderr, flush=True)
        with TemporaryDirectory() as folder:
            start = time.perf_counter()
            result = train_single_run(self._config, folder, verbose=False, device="cpu", seed=seed)
            elapsed = time.perf_counter() - start
            agent = load_agent(result["run_folder"])
            task = load_config(self._config).task
            returns, _ = play_episodes(
                agent, task.id, _EPISODES, arguments=task.arguments, seed=_SEED
            )
        reached = min(result["evaluation_results"][-1]["mean_reward"], float(returns.mean()))
        if reached < self._goal:
            raise RuntimeError(
                f"seed {seed} reached a mean return of {reached:.1f}; expected {self._goal:g}"
            )
        return elapsed
