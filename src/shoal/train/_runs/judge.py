"""How good the agent of a run has become, and which of it was the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.train._agents import Agent, load_agent
from shoal.train._config.loading import HOCKEY
from shoal.train._evaluation import evaluate_alone, play_matches
from shoal.train._records import EvaluationRecord
from shoal.train._runs.folder import RunFolder, RunPlan
from shoal.train._scripted import SCRIPTED
from shoal.train._tasks import EnvSource

__all__ = ["Judge"]


class Judge:
    """Evaluates the agent of a run, always in the same games, and keeps the best.

    Args:
        plan: Of the run.
        folder: Where the best agent is kept.
        env: What it is trained on.
        seed: Of the games.
    """

    def __init__(self, plan: RunPlan, folder: RunFolder, env: EnvSource, seed: int) -> None:
        self._plan = plan
        self._folder = folder
        self._env = env
        self._seed = seed
        self._best: float | None = None
        self.evaluations: list[EvaluationRecord] = []
        self.is_satisfied = False
        """Whether the agent has reached what the run was to stop at."""

    def evaluate(self, agent: Agent, step: int) -> list[EvaluationRecord]:
        """See how good the agent is at this step."""
        plan = self._plan
        if self._env == HOCKEY:
            found = [self._against(agent, step, opponent) for opponent in plan.eval_opponents]
            score = float(np.mean([record.win_rate for record in found]))
        else:
            found = [self._alone(agent, step)]
            score = found[0].mean_reward
        if self._best is None or score >= self._best:
            agent.save(self._folder.best_agent)
            self._best = score
        self.evaluations += found
        wanted = plan.config.training.stop_at_reward
        self.is_satisfied = wanted is not None and all(
            record.mean_reward >= wanted for record in found
        )
        return found

    def _against(self, agent: Agent, step: int, opponent: str) -> EvaluationRecord:
        plan = self._plan
        other: Agent | str = opponent
        if opponent not in SCRIPTED:
            other = load_agent(self._folder.adopted_file(opponent, plan), plan.device)
        matches = play_matches(
            agent, other, plan.eval_num_games, seed=self._seed, keep_mode=plan.keeps_puck
        )
        return matches.record(step, opponent)

    def _alone(self, agent: Agent, step: int) -> EvaluationRecord:
        config = self._plan.config
        return evaluate_alone(
            agent,
            step,
            self._env,
            self._plan.eval_num_games,
            config.task.arguments,
            self._seed,
            config.training.max_episode_steps,
        )

    def state(self) -> dict[str, Any]:
        """What was found so far."""
        return {
            "evaluations": [list(record) for record in self.evaluations],
            "best": self._best,
            "is_satisfied": self.is_satisfied,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        self.evaluations = [EvaluationRecord(*record) for record in state["evaluations"]]
        self._best = state["best"]
        self.is_satisfied = state["is_satisfied"]
