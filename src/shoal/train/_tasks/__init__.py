"""Training tasks: vector environments with the rules by which episodes start in their slots."""

from shoal.train._tasks.hockey_task import HockeyTask
from shoal.train._tasks.sources import EnvSource
from shoal.train._tasks.vector_task import FinishedEpisode, Outcome, VectorTask

__all__ = ["EnvSource", "FinishedEpisode", "HockeyTask", "Outcome", "VectorTask"]
