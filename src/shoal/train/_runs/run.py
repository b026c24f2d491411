"""The training loop of a run."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from shoal.errors import NotFiniteError
from shoal.train._agents import Agent
from shoal.train._agents.base import read_agent
from shoal.train._curriculum import Progress
from shoal.train._records import EpisodeRecord, ProgressRecord
from shoal.train._reporting import Reporter
from shoal.train._runs.checkpoints import Checkpoints
from shoal.train._runs.devices import cpu_threads, fast_matmul
from shoal.train._runs.evaluator import Evaluator
from shoal.train._runs.folder import RunFolder, RunPlan
from shoal.train._runs.interrupts import Interrupts
from shoal.train._runs.parts import build
from shoal.train._tasks import EnvSource, FinishedEpisode, HockeyTask
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["Run"]

_RECENT_EPISODES = 100
"""Number of most recent episodes over which mean reward and win rate are computed."""

_REPORT_INTERVAL = 0.5
"""Seconds between two records of progress."""


class Run:
    """A training run, new or restored from a checkpoint.

    Args:
        plan: The plan of the run.
        folder: The folder for its files.
        env: The environment to train on.
    """

    def __init__(self, plan: RunPlan, folder: RunFolder, env: EnvSource) -> None:
        self.plan = plan
        self.folder = folder
        self.env = env
        training = plan.config.training
        self._checkpoints = Checkpoints(folder.checkpoints, training.checkpoints_kept)
        self._progress = Progress(plan.config.curriculum.phases)
        self._parts = build(plan, folder, env)
        self.steps = self.episodes = 0
        self.seconds = 0.0
        self._evaluator = Evaluator(plan, folder, env, self._parts.evaluation_seed)
        self._recent: deque[tuple[float, int | None]] = deque(maxlen=_RECENT_EPISODES)
        self._next_checkpoint = training.checkpoint_save_freq
        self._next_evaluation = plan.eval_freq_steps
        # Number of steps and evaluations in the last checkpoint.
        self._saved: tuple[int, int] | None = None
        self._is_restored = False
        self._reporter: Reporter
        self._started_at = self._reported_at = self._reported_steps = self._reported_updates = 0.0

    def initialize_agents(self) -> None:
        """Initialize the agents of a new run: from ``initial_agent`` if there is one."""
        if self.plan.initial_agent is not None:
            name = self.plan.initial_agent
            self.agent.take(read_agent(self.folder.agent_file(name, self.plan)), name)
        for exploiter in self._parts.trainees[1:]:
            exploiter.agent.take(self.agent.description(), "the agent")

    @property
    def envs(self) -> VectorEnv:
        """The vector environment."""
        return self._parts.task.envs

    @property
    def agent(self) -> Agent:
        """The agent in training."""
        return self._parts.main.agent

    @property
    def updates(self) -> int:
        """Number of gradient steps of all agents."""
        return sum(trainee.updates for trainee in self._parts.trainees)

    def train(self, reporter: Reporter) -> bool:
        """Train until the run is finished or interrupted.

        Returns:
            True if the run is finished; False if Ctrl-C was pressed and the run was saved.
        """
        self._reporter = reporter
        task, progress = self._parts.task, self._progress
        if not self._is_restored:
            task.begin(progress.phase, progress)
            task.reset()
        plan, self._interrupts = self.plan, Interrupts()
        with self._interrupts as interrupts, fast_matmul(plan.device), cpu_threads(plan.threads):
            self._reported_at = time.perf_counter()
            # Backdate the start by the training time of previous sessions.
            self._started_at = self._reported_at - self.seconds
            self._reported_steps, self._reported_updates = self.steps, self.updates
            # A run that was killed during an evaluation repeats it first.
            self._housekeeping()
            while not (self._is_done() or interrupts.requested):
                self._step()
                self.seconds = time.perf_counter() - self._started_at
                self._housekeeping()
            if not interrupts.requested:
                for trainee in self._parts.trainees:
                    trainee.finish_updates()
                self.seconds = time.perf_counter() - self._started_at
                self._report_progress()
                if self._last_evaluated() < self.steps:
                    self.save()
                    self._evaluate()
            self.save()
            return not interrupts.requested

    def _is_done(self) -> bool:
        return self._share() >= 1.0 or self._evaluator.target_reached

    def _share(self) -> float:
        """Return the completed fraction of the run, by curriculum or by ``max_seconds``."""
        done, limit = self._progress.share, self.plan.config.training.max_seconds
        return done if limit is None else min(1.0, max(done, self.seconds / limit))

    def _step(self) -> None:
        task, progress, trainees = self._parts.task, self._progress, self._parts.trainees
        actions = [trainee.act(task.observations) for trainee in trainees]
        outcome = task.step(actions[0] if len(actions) == 1 else np.concatenate(actions))
        self.steps += task.num_envs
        slots = np.flatnonzero(outcome.terminated | outcome.truncated)
        self._record_episodes(task.finished_episodes(slots))
        is_over = progress.is_phase_over
        if is_over:
            outcome.truncated[~outcome.terminated] = True  # a phase change ends all episodes
        for trainee in trainees:
            trainee.remember(outcome)
            trainee.agent.progressed(trainee.pace.steps, progress.share)
        if is_over:
            self._next_phase()
        else:
            task.reset(slots)
            self._grow_league()

    def _record_episodes(self, finished: list[FinishedEpisode]) -> None:
        """Count and report the finished episodes that belong to the phase."""
        progress, league = self._progress, self._parts.league
        num_main_slots = self.agent.num_slots
        main_episodes = [episode for episode in finished if episode.slot < num_main_slots]
        count = progress.count(self._parts.task.num_envs, len(main_episodes))
        records, log_freq = [], self.plan.config.training.episode_log_freq
        phase = progress.phase.name
        for episode in main_episodes[:count]:
            self.episodes += 1
            self._recent.append((episode.reward, episode.winner))
            if self.episodes % log_freq:
                continue
            records.append(
                EpisodeRecord(
                    step=self.steps,
                    episode=self.episodes,
                    phase=phase,
                    slot=episode.slot,
                    length=episode.length,
                    reward=episode.reward,
                    shaped_reward=episode.shaped_reward,
                    opponent=episode.opponent,
                    winner=episode.winner,
                )
            )
        if records:
            self._reporter.episodes(records)
        if league is not None:
            league.record(finished, num_main_slots)

    def _grow_league(self) -> None:
        league, task = self._parts.league, self._parts.task
        if league is None or not isinstance(task, HockeyTask):
            return
        main, *exploiters = self._parts.trainees
        exploiter = exploiters[0].agent if exploiters else None
        table, exploiter_reset = league.grow(
            self.steps, self.episodes, main.agent, exploiter, task.opponents, task
        )
        if table:
            self._reporter.ratings(table)
        if exploiter_reset:
            task.reset(np.arange(main.agent.num_slots, task.num_envs))

    def _next_phase(self) -> None:
        task, progress = self._parts.task, self._progress
        for trainee in self._parts.trainees:
            trainee.finish_updates()
            trainee.agent.cut()
        progress.begin_next()
        if progress.is_over:
            return
        phase = progress.phase
        self._reporter.note(f"phase {phase.name} starts at step {self.steps:,}")
        if phase.clear_buffer:
            for trainee in self._parts.trainees:
                trainee.agent.clear_memory()
        task.begin(phase, progress)
        task.reset()

    def _housekeeping(self) -> None:
        if time.perf_counter() - self._reported_at >= _REPORT_INTERVAL:
            self._report_progress()
        if self.steps >= self._next_checkpoint:
            self._next_checkpoint += self.plan.config.training.checkpoint_save_freq
            self.save()
        if self.steps >= self._next_evaluation:
            self._evaluate()

    def _report_progress(self) -> None:
        now, progress = time.perf_counter(), self._progress
        elapsed = max(now - self._reported_at, 1e-9)
        losses = self.agent.metrics()
        for name, value in losses.items():
            self._check_finite(name, math.isfinite(value))
        winners = [winner for _, winner in self._recent if winner is not None]
        rewards = [reward for reward, _ in self._recent]
        self._reporter.progress(
            ProgressRecord(
                step=self.steps,
                episodes=self.episodes,
                updates=self.updates,
                seconds=self.seconds,
                phase=progress.phase.name,
                phase_number=min(progress.number, len(self.plan.config.curriculum.phases) - 1),
                phase_share=1.0 if progress.is_over else min(1.0, progress.phase_share),
                share=self._share(),
                steps_per_second=(self.steps - self._reported_steps) / elapsed,
                updates_per_second=(self.updates - self._reported_updates) / elapsed,
                mean_reward=float(np.mean(rewards)) if rewards else None,
                win_rate=float(np.mean(np.equal(winners, 1))) if winners else None,
                losses=losses,
            )
        )
        self._reported_at = now
        self._reported_steps, self._reported_updates = self.steps, self.updates

    def _check_finite(self, name: str, is_finite: bool) -> None:
        if not is_finite:
            raise NotFiniteError(
                f"after {self.updates:,} updates, {name} is not finite: the agent has diverged; "
                "`shoal resume` continues from the newest checkpoint"
            )

    def _evaluate(self) -> None:
        try:
            with self._untimed(), self._interrupts.immediate():
                records = self._evaluator.evaluate(self.agent, self.steps)
        except KeyboardInterrupt:
            if not self._interrupts.requested:
                raise
            return  # the evaluation is repeated when the run is resumed
        except Exception:
            self.save()
            raise
        while self._next_evaluation <= self.steps:
            self._next_evaluation += self.plan.eval_freq_steps
        for record in records:
            self._reporter.evaluation(record)

    @contextmanager
    def _untimed(self) -> Iterator[None]:
        """Exclude the time spent in the block from the training time."""
        start = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - start
            self._started_at += elapsed
            self._reported_at += elapsed

    def _last_evaluated(self) -> int:
        evaluations = self._evaluator.evaluations
        return evaluations[-1].step if evaluations else -1

    def save(self) -> None:
        """Write a checkpoint of the complete state."""
        now = self.steps, len(self._evaluator.evaluations)
        if now == self._saved:
            return
        for trainee in self._parts.trainees:
            for name, values in trainee.agent.network.named_parameters():
                self._check_finite(name, bool(values.isfinite().all()))
        with self._untimed():
            path = self._checkpoints.save(self.steps, self._state())
        self._saved = now
        self._reporter.note(f"checkpoint {path.name}")

    def _state(self) -> dict[str, Any]:
        parts = self._parts
        with_memory = self.plan.config.training.checkpoint_replay
        return {
            "agent": self.agent.description(),
            "steps": self.steps,
            "episodes": self.episodes,
            "seconds": self.seconds,
            "evaluator": self._evaluator.state(),
            "recent": [list(episode) for episode in self._recent],
            "next_checkpoint": self._next_checkpoint,
            "next_evaluation": self._next_evaluation,
            "progress": self._progress.state(),
            "trainees": [trainee.state(with_memory=with_memory) for trainee in parts.trainees],
            "task": parts.task.state(),
            "rng": parts.rng.bit_generator.state,
            "league": None if parts.league is None else parts.league.state(),
            "logs": self._reporter.positions(),
        }

    def restore(self, name: str | None = None) -> dict[str, int] | None:
        """Restore a checkpoint.

        Args:
            name: The name of the checkpoint. Defaults to the newest; a run without checkpoints
                starts from the beginning.

        Returns:
            The positions in the logs; None if the run starts from the beginning.

        Raises:
            CheckpointError: If the checkpoint is damaged or does not exist.
        """
        if name is None and not self._checkpoints.files():
            self.initialize_agents()
            return None
        device = self.plan.device
        state = (
            self._checkpoints.newest(device)
            if name is None
            else self._checkpoints.read(name, device)
        )
        parts = self._parts
        self.steps, self.episodes = state["steps"], state["episodes"]
        self.seconds = state["seconds"]
        self._evaluator.restore(state["evaluator"])
        self._recent.extend((reward, winner) for reward, winner in state["recent"])
        self._next_checkpoint = state["next_checkpoint"]
        self._next_evaluation = state["next_evaluation"]
        self._progress.restore(state["progress"])
        if parts.league is not None:
            parts.league.restore(state["league"])
        for trainee, saved in zip(parts.trainees, state["trainees"], strict=True):
            trainee.restore(saved)
            if not parts.task.can_be_saved:
                trainee.discard_episodes()
        parts.task.begin(self._progress.phase, self._progress)
        parts.task.restore(state["task"], self.steps)
        parts.rng.bit_generator.state = state["rng"]
        self._is_restored = True
        self._saved = self.steps, len(self._evaluator.evaluations)
        logs: dict[str, int] = state["logs"]
        return logs

    def result(self) -> dict[str, Any]:
        """Return the result of the run as plain data."""
        rewards = [reward for reward, _ in self._recent]
        seconds = max(self.seconds, 1e-9)
        return {
            "run_name": self.plan.name,
            "run_folder": str(self.folder.path),
            "total_steps": self.steps,
            "total_episodes": self.episodes,
            "total_gradient_steps": self.updates,
            "mean_reward": float(np.mean(rewards)) if rewards else float("nan"),
            "final_reward": rewards[-1] if rewards else float("nan"),
            "evaluation_results": [record._asdict() for record in self._evaluator.evaluations],
            "seconds": self.seconds,
            "steps_per_second": self.steps / seconds,
            "updates_per_second": self.updates / seconds,
            "updates_per_step": self.updates / max(1, self.steps),
        }

    def config(self) -> dict[str, Any]:
        """Return the plan of the run as plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(self.plan)
        return plain

    def close(self) -> None:
        """Close the environments."""
        self._parts.task.close()
