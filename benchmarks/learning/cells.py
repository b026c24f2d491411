"""The contenders of each cell of the groups ``learning-cpu`` and ``learning-cuda``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.learning.evaluation import Games
from benchmarks.learning.exercise import Exercise
from benchmarks.learning.loops import Collecting, CurriculumSteps, PPOLearning
from benchmarks.learning.updates import AS_DQN, ShoalUpdates, StableBaselinesUpdates
from benchmarks.turns import Measuring, Samplers
from shoal.train._runs.devices import fast_matmul

__all__ = ["CURRICULUM_STEPS", "exercises", "samplers"]

CURRICULUM_STEPS = 1600
"""The environment steps of a round of the curriculum, for any number of environments."""


def exercises(workload: str, size: int, device: str) -> Mapping[str, Callable[[], Exercise]]:
    """Return the constructors of all exercises of a cell.

    Args:
        workload: The workload.
        size: The number of environments or games.
        device: The device of networks.
    """
    found: dict[str, Mapping[str, Callable[[], Exercise]]] = {
        "collection": {"shoal-dddqn": partial(Collecting, size, device)},
        "SAC-updates": {
            "shoal-sac": partial(ShoalUpdates, "SAC", device),
            "sb3-sac": partial(StableBaselinesUpdates, "SAC", device),
        },
        "DQN-updates": {
            "shoal-dddqn": partial(ShoalUpdates, "DDDQN", device),
            "shoal-as-dqn": partial(ShoalUpdates, "DDDQN", device, **AS_DQN),
            "sb3-dqn": partial(StableBaselinesUpdates, "DQN", device),
        },
        "PPO": {"shoal-ppo": partial(PPOLearning, size, device)},
        "curriculum": {
            f"num_envs={count}": partial(CurriculumSteps, count, device, CURRICULUM_STEPS)
            for count in (1, 4, 8)
        },
        "evaluation": {
            opponent: partial(Games, opponent, size, device) for opponent in ("weak", "strong")
        },
    }
    return found[workload]


def samplers(workload: str, size: int, settings: Measuring) -> Samplers:
    """Return the makers of all samplers of a cell."""
    device = settings.device
    return {
        name: partial(_made, make, device)
        for name, make in exercises(workload, size, device).items()
    }


def _made(make: Callable[[], Exercise], device: str) -> Exercise:
    with fast_matmul(device):
        return make()
