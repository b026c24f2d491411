"""How long the configs that come along take to learn what they promise, from nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import NamedTuple

import torch

from benchmarks.files import write_results
from benchmarks.judging import Figure, Verdict, verdict_table
from shoal._bench import machine
from shoal._bench.tables import Table, markdown, plain
from shoal.train import load_agent, load_config, play_episodes, train_single_run

__all__ = ["GOALS", "Attempt", "Goal", "attempt", "measure_goals"]

_FRESH_EPISODES = 100
_FRESH_SEED = 1_000_000
"""Of episodes that no run has been evaluated on."""

_LEGEND = (
    "Each config is trained with each seed in this process, on the CPU, until an evaluation "
    "reaches the mean return that it promises. Seconds: wall-clock, from the call to its return, "
    "with the evaluations, the logs, the plots, the report and the video. The figure is the "
    "longest of them; there is none if one seed did not reach the return. At the stop: the mean "
    "return of the evaluation that ended the run. Fresh: that of the agent that was kept, over "
    "{episodes} other episodes."
)


class Goal(NamedTuple):
    """What a config must reach, and how soon."""

    config: str
    seconds: float

    @property
    def mean(self) -> float:
        """The mean return at which its training stops."""
        reached = load_config(self.config).training.stop_at_reward
        if reached is None:
            raise ValueError(f"the config {self.config} promises no return")
        return reached


GOALS = (Goal("cartpole_dddqn", 120.0), Goal("pendulum_sac", 300.0))


@dataclass(frozen=True)
class Attempt:
    """One training."""

    config: str
    seed: int
    seconds: float
    steps: int
    updates: int
    at_the_stop: float
    fresh: float


def attempt(config: str, seed: int) -> Attempt:
    """Train a config that comes along, as a user does who wants to see nothing."""
    with TemporaryDirectory() as folder:
        start = time.perf_counter()
        result = train_single_run(config, folder, verbose=False, device="cpu", seed=seed)
        seconds = time.perf_counter() - start
        agent = load_agent(result["run_folder"])
        task = load_config(config).task
        returns, _ = play_episodes(
            agent, task.id, _FRESH_EPISODES, arguments=task.arguments, seed=_FRESH_SEED
        )
    return Attempt(
        config,
        seed,
        seconds,
        result["total_steps"],
        result["total_gradient_steps"],
        result["evaluation_results"][-1]["mean_reward"],
        float(returns.mean()),
    )


def measure_goals(seeds: Sequence[int], output: Path) -> bool:
    """Train, print tables, and write ``goals``; returns whether every goal was reached in time."""
    attempts = []
    for goal in GOALS:
        for seed in seeds:
            print(f"{goal.config}, seed {seed}", file=sys.stderr, flush=True)
            attempts.append(attempt(goal.config, seed))
    verdicts = [_verdict(goal, attempts) for goal in GOALS]
    here = machine.describe() | {"threads": torch.get_num_threads(), "torch": torch.__version__}
    parts = partial(_parts, verdicts, attempts)
    print("\n\n".join(parts(plain, partial(fill, width=100))))
    data = {
        "machine": here,
        "attempts": [asdict(each) for each in attempts],
        "figures": [verdict.as_json() for verdict in verdicts],
    }
    title = (
        f"# Goals\n\n{here['date']}, {here['cpu']}, {here['cores']} cores, {here['system']}; "
        f"torch {here['torch']}, {here['threads']} threads."
    )
    write_results(output, "goals", data, "\n\n".join([title, *parts(markdown, str)]) + "\n")
    return all(verdict.reached for verdict in verdicts)


def _verdict(goal: Goal, attempts: Sequence[Attempt]) -> Verdict:
    own = [each for each in attempts if each.config == goal.config]
    reached = all(each.at_the_stop >= goal.mean for each in own)
    longest = max(each.seconds for each in own) if reached else None
    what = f"{goal.config}: seconds to a mean return of {goal.mean:g}, longest of {len(own)} seeds"
    return Verdict(Figure(what, lambda _: longest, at_most=goal.seconds), longest)


def _parts(
    verdicts: Sequence[Verdict],
    attempts: Sequence[Attempt],
    draw: Callable[[Table], str],
    written: Callable[[str], str],
) -> list[str]:
    rows = [
        [
            f"{each.config}, seed {each.seed}",
            f"{each.seconds:.0f}",
            f"{each.steps:,}",
            f"{each.updates:,}",
            f"{each.at_the_stop:.1f}",
            f"{each.fresh:.1f}",
        ]
        for each in attempts
    ]
    header = ["", "seconds", "steps", "updates", "at the stop", "fresh"]
    return [
        draw(verdict_table(verdicts)),
        draw(Table(header, rows)),
        written(_LEGEND.format(episodes=_FRESH_EPISODES)),
    ]
