"""A training run: step by step through its curriculum."""

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
from shoal.train._runs.folder import RunFolder, RunPlan
from shoal.train._runs.interrupts import Interrupts
from shoal.train._runs.judge import Judge
from shoal.train._runs.parts import build
from shoal.train._tasks import Ended, EnvSource, HockeyTask
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["Run"]

_LATE = 100
"""So many episodes tell how the agent is doing at the moment."""

_TELL_EVERY = 0.5
"""Seconds between two records of progress."""


class Run:
    """A training run, from its beginning or from where it was saved.

    Args:
        plan: What it is begun with.
        folder: Where it writes.
        env: What it trains on.
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
        self._judge = Judge(plan, folder, env, self._parts.evaluation_seed)
        self._late: deque[tuple[float, int | None]] = deque(maxlen=_LATE)
        self._next_checkpoint = training.checkpoint_save_freq
        self._next_evaluation = plan.eval_freq_steps
        self._saved: tuple[int, int] | None = None  # steps and evaluations of the last checkpoint
        self._is_restored = False
        self._reporter: Reporter
        self._since = self._told = self._told_steps = self._told_updates = 0.0

    def begin(self) -> None:
        """Let all that learn know what they are to begin with."""
        if self.plan.initial_agent is not None:
            name = self.plan.initial_agent
            self.agent.take(read_agent(self.folder.adopted_file(name, self.plan)), name)
        for exploiter in self._parts.trainees[1:]:
            exploiter.agent.take(self.agent.description(), "the agent")

    @property
    def envs(self) -> VectorEnv:
        """What it is trained on."""
        return self._parts.task.envs

    @property
    def agent(self) -> Agent:
        """What is trained."""
        return self._parts.main.agent

    @property
    def updates(self) -> int:
        """Gradient steps so far, of all that learn."""
        return sum(trainee.updates for trainee in self._parts.trainees)

    def train(self, reporter: Reporter) -> bool:
        """Go on until the curriculum is over.

        Returns:
            Whether it is; otherwise Ctrl-C was pressed, and everything was saved.
        """
        self._reporter = reporter
        task, progress = self._parts.task, self._progress
        if not self._is_restored:
            task.begin(progress.phase, progress)
            task.reset()
        plan, self._interrupts = self.plan, Interrupts()
        with self._interrupts as interrupts, fast_matmul(plan.device), cpu_threads(plan.threads):
            # As if all of the training so far had been done just now.
            self._told = time.perf_counter()
            self._since = self._told - self.seconds
            self._told_steps, self._told_updates = self.steps, self.updates
            # A run that was killed in an evaluation begins with it.
            self._housekeeping()
            while not (self._is_done() or interrupts.requested):
                self._step()
                self.seconds = time.perf_counter() - self._since
                self._housekeeping()
            if not interrupts.requested:
                for trainee in self._parts.trainees:
                    trainee.finish_updates()
                self.seconds = time.perf_counter() - self._since
                self._tell()
                if self._last_evaluated() < self.steps:
                    self.save()
                    self._evaluate()
            self.save()
            return not interrupts.requested

    def _is_done(self) -> bool:
        return self._share() >= 1.0 or self._judge.is_satisfied

    def _share(self) -> float:
        """Which part of the run is done, be it by its curriculum or by its time."""
        done, limit = self._progress.share, self.plan.config.training.max_seconds
        return done if limit is None else min(1.0, max(done, self.seconds / limit))

    def _step(self) -> None:
        task, progress, trainees = self._parts.task, self._progress, self._parts.trainees
        chosen = [trainee.act(task.observations) for trainee in trainees]
        outcome = task.step(chosen[0] if len(chosen) == 1 else np.concatenate(chosen))
        self.steps += task.num_envs
        slots = np.flatnonzero(outcome.terminated | outcome.truncated)
        self._count(task.ended(slots))
        is_over = progress.is_phase_over
        if is_over:
            outcome.truncated[~outcome.terminated] = True  # what goes on there is cut short
        for trainee in trainees:
            trainee.remember(outcome)
            trainee.agent.progressed(trainee.pace.steps, progress.share)
        if is_over:
            self._next_phase()
        else:
            task.reset(slots)
            self._grow_league()

    def _count(self, ended: list[Ended]) -> None:
        """Tell of episodes that have ended, as far as they belong to the phase."""
        progress, league = self._progress, self._parts.league
        mains = self.agent.num_slots
        own = [episode for episode in ended if episode.slot < mains]
        counted = own[: progress.count(self._parts.task.num_envs, len(own))]
        records, often = [], self.plan.config.training.episode_log_freq
        phase = progress.phase.name
        for episode in counted:
            self.episodes += 1
            self._late.append((episode.reward, episode.winner))
            if self.episodes % often:
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
            league.record(ended, mains)

    def _grow_league(self) -> None:
        league, task = self._parts.league, self._parts.task
        if league is None or not isinstance(task, HockeyTask):
            return
        main, *others = self._parts.trainees
        exploiter = others[0].agent if others else None
        table, renewed = league.grow(
            self.steps, self.episodes, main.agent, exploiter, task.opponents, task
        )
        if table:
            self._reporter.ratings(table)
        if renewed:
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
        self._reporter.note(f"phase {phase.name} begins at step {self.steps:,}")
        if phase.clear_buffer:
            for trainee in self._parts.trainees:
                trainee.agent.clear_memory()
        task.begin(phase, progress)
        task.reset()

    def _housekeeping(self) -> None:
        if time.perf_counter() - self._told >= _TELL_EVERY:
            self._tell()
        if self.steps >= self._next_checkpoint:
            self._next_checkpoint += self.plan.config.training.checkpoint_save_freq
            self.save()
        if self.steps >= self._next_evaluation:
            self._evaluate()

    def _tell(self) -> None:
        now, progress = time.perf_counter(), self._progress
        passed = max(now - self._told, 1e-9)
        losses = self.agent.metrics()
        for name, value in losses.items():
            self._check_finite(name, math.isfinite(value))
        winners = [winner for _, winner in self._late if winner is not None]
        rewards = [reward for reward, _ in self._late]
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
                steps_per_second=(self.steps - self._told_steps) / passed,
                updates_per_second=(self.updates - self._told_updates) / passed,
                mean_reward=float(np.mean(rewards)) if rewards else None,
                win_rate=float(np.mean(np.equal(winners, 1))) if winners else None,
                losses=losses,
            )
        )
        self._told, self._told_steps, self._told_updates = now, self.steps, self.updates

    def _check_finite(self, what: str, is_finite: bool) -> None:
        if not is_finite:
            raise NotFiniteError(
                f"after {self.updates:,} updates the {what} is not finite: the agent has diverged; "
                "`shoal resume` would go on from the newest checkpoint"
            )

    def _evaluate(self) -> None:
        try:
            with self._apart(), self._interrupts.at_once():
                found = self._judge.evaluate(self.agent, self.steps)
        except KeyboardInterrupt:
            if not self._interrupts.requested:
                raise
            return  # it is due again when the run goes on
        except Exception:
            self.save()  # of the training before it nothing is lost
            raise
        while self._next_evaluation <= self.steps:
            self._next_evaluation += self.plan.eval_freq_steps
        for record in found:
            self._reporter.evaluation(record)

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """What is done meanwhile is no part of how fast the run trains."""
        began = time.perf_counter()
        try:
            yield
        finally:
            passed = time.perf_counter() - began
            self._since += passed
            self._told += passed

    def _last_evaluated(self) -> int:
        evaluations = self._judge.evaluations
        return evaluations[-1].step if evaluations else -1

    def save(self) -> None:
        """Write a checkpoint, after which the run can be killed and lose nothing."""
        now = self.steps, len(self._judge.evaluations)
        if now == self._saved:
            return
        for trainee in self._parts.trainees:
            for name, values in trainee.agent.network.named_parameters():
                self._check_finite(name, bool(values.isfinite().all()))
        with self._apart():
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
            "judge": self._judge.state(),
            "late": [list(episode) for episode in self._late],
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
        """Go on from a checkpoint.

        Args:
            name: Which one; the newest by default. Where there is none at all, the run begins anew.

        Returns:
            Where the logs ended; None for a run that begins anew.

        Raises:
            CheckpointError: It is damaged, or not there.
        """
        if name is None and not self._checkpoints.files():
            self.begin()
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
        self._judge.restore(state["judge"])
        self._late.extend((reward, winner) for reward, winner in state["late"])
        self._next_checkpoint = state["next_checkpoint"]
        self._next_evaluation = state["next_evaluation"]
        self._progress.restore(state["progress"])
        if parts.league is not None:
            parts.league.restore(state["league"])
        for trainee, saved in zip(parts.trainees, state["trainees"], strict=True):
            trainee.restore(saved)
            if not parts.task.can_be_saved:
                trainee.abandon_episodes()
        parts.task.begin(self._progress.phase, self._progress)
        parts.task.restore(state["task"], self.steps)
        parts.rng.bit_generator.state = state["rng"]
        self._is_restored = True
        self._saved = self.steps, len(self._judge.evaluations)
        logs: dict[str, int] = state["logs"]
        return logs

    def result(self) -> dict[str, Any]:
        """What came of it."""
        rewards = [reward for reward, _ in self._late]
        seconds = max(self.seconds, 1e-9)
        return {
            "run_name": self.plan.name,
            "run_folder": str(self.folder.path),
            "total_steps": self.steps,
            "total_episodes": self.episodes,
            "total_gradient_steps": self.updates,
            "mean_reward": float(np.mean(rewards)) if rewards else float("nan"),
            "final_reward": rewards[-1] if rewards else float("nan"),
            "evaluation_results": [record._asdict() for record in self._judge.evaluations],
            "seconds": self.seconds,
            "steps_per_second": self.steps / seconds,
            "updates_per_second": self.updates / seconds,
            "updates_per_step": self.updates / max(1, self.steps),
        }

    def config(self) -> dict[str, Any]:
        """What it was begun with, as plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(self.plan)
        return plain

    def close(self) -> None:
        """Close the environments."""
        self._parts.task.close()
