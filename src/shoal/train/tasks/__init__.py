"""What agents are trained on: vectors, with the rules by which episodes begin in their slots."""

from shoal.train.tasks.hockey_task import HockeyTask
from shoal.train.tasks.vector_task import Ended, Outcome, VectorTask

__all__ = ["Ended", "HockeyTask", "Outcome", "VectorTask"]
