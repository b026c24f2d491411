"""What agents are trained on: vectors, with the rules by which episodes begin in their slots."""

from shoal.train._tasks.hockey_task import HockeyTask
from shoal.train._tasks.sources import EnvSource
from shoal.train._tasks.vector_task import Ended, Outcome, VectorTask

__all__ = ["Ended", "EnvSource", "HockeyTask", "Outcome", "VectorTask"]
