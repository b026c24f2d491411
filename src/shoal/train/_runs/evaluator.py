"""Evaluation of the agent during a run, and selection of the best agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.train._agents import Agent, load_agent
from shoal.train._config.loading import HOCKEY
from shoal.train._evaluation import evaluate_single_agent, play_matches
from shoal.train._records import EvaluationRecord
from shoal.train._runs.folder import RunFolder, RunPlan
from shoal.train._scripted import SCRIPTED
from shoal.train._tasks import EnvSource

__all__ = ["Evaluator"]


class Evaluator:
    """Evaluates the agent of a run, always in the same games, and saves the best agent.

    Args:
        plan: The plan of the run.
        folder: The folder in which the best agent is saved.
        env: The environment.
        seed: The seed of the games.
    """

    def __init__(self, plan: RunPlan, folder: RunFolder, env: EnvSource, seed: int) -> None:
        self._plan = plan
        self._folder = folder
        self._env = env
        self._seed = seed
        self._best: float | None = None
        self.evaluations: list[EvaluationRecord] = []
        self.target_reached = False
        """Whether the agent reached ``stop_at_reward`` in the last evaluation."""

    def evaluate(self, agent: Agent, step: int) -> list[EvaluationRecord]:
        """Evaluate the agent, and save it if it is the best so far."""
        plan = self._plan
        if self._env == HOCKEY:
            records = [self._against(agent, step, opponent) for opponent in plan.eval_opponents]
            score = float(np.mean([record.win_rate for record in records]))
        else:
            records = [self._without_opponent(agent, step)]
            score = records[0].mean_reward
        if self._best is None or score >= self._best:
            agent.save(self._folder.best_agent)
            self._best = score
        self.evaluations += records
        target = plan.config.training.stop_at_reward
        self.target_reached = target is not None and all(
            record.mean_reward >= target for record in records
        )
        return records

    def _against(self, agent: Agent, step: int, opponent: str) -> EvaluationRecord:
        plan = self._plan
        player: Agent | str = opponent
        if opponent not in SCRIPTED:
            player = load_agent(self._folder.agent_file(opponent, plan), plan.device)
        matches = play_matches(
            agent, player, plan.eval_num_games, seed=self._seed, keep_mode=plan.keep_mode
        )
        return matches.record(step, opponent)

    def _without_opponent(self, agent: Agent, step: int) -> EvaluationRecord:
        config = self._plan.config
        return evaluate_single_agent(
            agent,
            step,
            self._env,
            self._plan.eval_num_games,
            config.task.arguments,
            self._seed,
            config.training.max_episode_steps,
        )

    def state(self) -> dict[str, Any]:
        """Return the evaluations so far as plain data."""
        return {
            "evaluations": [list(record) for record in self.evaluations],
            "best": self._best,
            "target_reached": self.target_reached,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state returned by :meth:`state`."""
        self.evaluations = [EvaluationRecord(*record) for record in state["evaluations"]]
        self._best = state["best"]
        self.target_reached = state["target_reached"]
