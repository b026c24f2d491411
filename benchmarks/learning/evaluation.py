"""Evaluation: games of hockey against a scripted opponent, all at the same time."""

from __future__ import annotations

from benchmarks.learning.configs import HIDDEN
from benchmarks.learning.exercise import Exercise
from shoal._bench.contenders.base import SEED
from shoal.train import make_agent, play_matches
from shoal.train._tasks.hockey_task import hockey_spaces

__all__ = ["Games"]


class Games(Exercise):
    """Evaluations of an untrained DDDQN agent; few of its games end early.

    Args:
        opponent: ``"weak"`` or ``"strong"``.
        games: The number of games of an evaluation.
        device: The device of the agent.
    """

    def __init__(self, opponent: str, games: int, device: str) -> None:
        super().__init__(device)
        self._opponent, self._games = opponent, games
        settings = {"hidden_dim": HIDDEN, "buffer_size": 1}
        self._agent = make_agent("DDDQN", hockey_spaces(), settings, device=device, seed=SEED)
        self._seed = SEED

    def once(self) -> int:
        """Play the games of one evaluation and return their number."""
        play_matches(self._agent, self._opponent, self._games, seed=self._seed)
        self._seed += self._games
        return self._games
