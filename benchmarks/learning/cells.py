"""Which cells there are, who takes part in each, and how a cell is measured, round by round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from functools import partial

from benchmarks.learning.exercise import Exercise
from benchmarks.learning.games import Games
from benchmarks.learning.loops import Collecting, CurriculumSteps, PPOLearning
from benchmarks.learning.settings import LearningSettings
from benchmarks.learning.updates import AS_DQN, ShoalUpdates, StableBaselinesUpdates
from benchmarks.training import rotated
from shoal._bench.results import Cell
from shoal.train._runs.devices import fast_matmul

__all__ = ["CURRICULUM", "UNITS", "Rounds", "environments", "makers"]

CURRICULUM = "curriculum_simple"
"""The workload in which numbers of environments are the contenders."""

UNITS = {
    "collection": "steps/s",
    "SAC updates": "updates/s",
    "DQN updates": "updates/s",
    "PPO": "steps/s",
    CURRICULUM: "steps/s",
    "evaluation": "games/s",
}
"""What is counted in each workload."""

Makers = Mapping[str, Callable[[], Exercise]]


def environments(num_envs: int) -> str:
    """Name the contender that has so many environments."""
    return f"num_envs={num_envs}"


def makers(workload: str, number: int, settings: LearningSettings) -> Makers:
    """Say who takes part in a cell, and how each is made.

    Args:
        workload: Its name.
        number: Of environments, or what counts in their place: the rows of a batch, or games.
        settings: What they are made for.
    """
    device = settings.device
    found: dict[str, Makers] = {
        "collection": {"shoal-dddqn": partial(Collecting, number, device)},
        "SAC updates": {
            "shoal-sac": partial(ShoalUpdates, "SAC", device),
            "sb3-sac": partial(StableBaselinesUpdates, "SAC", device),
        },
        "DQN updates": {
            "shoal-dddqn": partial(ShoalUpdates, "DDDQN", device),
            "shoal-as-dqn": partial(ShoalUpdates, "DDDQN", device, **AS_DQN),
            "sb3-dqn": partial(StableBaselinesUpdates, "DQN", device),
        },
        "PPO": {"shoal-ppo": partial(PPOLearning, number, device)},
        CURRICULUM: {
            environments(count): partial(CurriculumSteps, count, device, settings.steps)
            for count in (1, 4, 8)
        },
        "evaluation": {
            opponent: partial(Games, opponent, number, device) for opponent in ("weak", "strong")
        },
    }
    return found[workload]


class Rounds:
    """Measures cells, in this process: what is compared has the same threads, and the same GPU.

    Args:
        settings: How.
    """

    def __init__(self, settings: LearningSettings) -> None:
        self._settings = settings

    def measure(self, workload: str, number: int, names: Collection[str]) -> Cell:
        """Measure these contenders in all rounds, in turn; one that fails is told of and left."""
        settings = self._settings
        chosen = {
            name: make for name, make in makers(workload, number, settings).items() if name in names
        }
        cell = Cell(workload, number, list(chosen))
        exercises: dict[str, Exercise] = {}
        with ExitStack() as opened:
            # As a run multiplies matrices; the others do the same.
            opened.enter_context(fast_matmul(settings.device))

            def attempt(name: str, act: Callable[[str], None]) -> None:
                try:
                    act(name)
                except Exception as error:
                    cell.failures[name] = " ".join(f"{type(error).__name__}: {error}".split())
                    cell.rates.pop(name, None)
                    exercises.pop(name, None)

            def start(name: str) -> None:
                exercises[name] = exercise = chosen[name]()
                opened.callback(exercise.close)
                cell.rates[name] = []

            def take_round(name: str) -> None:
                cell.rates[name].append(exercises[name].take_round(settings.seconds))

            for name in chosen:
                attempt(name, start)
            for turn in range(settings.rounds):
                for name in rotated(list(exercises), turn):
                    attempt(name, take_round)
            cell.notes = {name: each.note for name, each in exercises.items() if each.note}
        return cell
