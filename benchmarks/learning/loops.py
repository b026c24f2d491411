"""Training runs, gone on with step by step: the loop of ``shoal.train`` itself."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.learning.configs import NEVER, collecting, shipped_endless
from benchmarks.learning.exercise import Exercise
from shoal._bench.contenders.base import SEED
from shoal.train._config import Config
from shoal.train._reporting import Reporter
from shoal.train._runs.folder import RunFolder, RunPlan
from shoal.train._runs.run import Run

__all__ = ["Collecting", "CurriculumSteps", "PPOLearning", "TrainingLoop"]

_RECORDED = 8
"""After so many updates, or rollouts, all that is recorded on a GPU has been recorded."""


class TrainingLoop(Exercise):
    """A training run, as far as its loop goes: no evaluations, no checkpoints.

    It counts environment steps, over all slots.

    Args:
        config: What is trained, and how.
        num_envs: In how many environments.
        device: Where the agent computes.
        together: Steps of the vector that are done as a whole.
    """

    def __init__(self, config: Config, num_envs: int, device: str, together: int) -> None:
        super().__init__(device)
        self._together = together
        plan = RunPlan(
            name="measured",
            config=config,
            num_envs=num_envs,
            seed=SEED,
            device=device,
            eval_freq_steps=NEVER,
            eval_num_games=1,
            eval_opponents=["weak"],
        )
        phases = [phase.name for phase in config.curriculum.phases]
        with ExitStack() as resources:
            path = Path(resources.enter_context(TemporaryDirectory()))
            self.run = Run(plan, RunFolder(path), config.task.id)
            resources.callback(self.run.close)
            reporter = Reporter(path, plan.name, phases, verbose=False, tensorboard=False)
            self.run._reporter = resources.enter_context(reporter)
            # How Run.train begins, which would go on to the end of the curriculum.
            task, progress = self.run._parts.task, self.run._progress
            task.begin(progress.phase, progress)
            task.reset()
            self._resources = resources.pop_all()

    def once(self) -> int:
        """Take some steps of all slots, with the updates that are due."""
        return self.advance(self._together)

    def advance(self, steps: int) -> int:
        """Take so many steps of all slots; returns how many environment steps that were."""
        run, before = self.run, self.run.steps
        for _ in range(steps):
            run._step()
            run._housekeeping()
        return run.steps - before

    def close(self) -> None:
        """Close the run, and remove its folder."""
        self._resources.close()


class Collecting(TrainingLoop):
    """DDDQN in hockey that acts and remembers, and never learns.

    Args:
        num_envs: In how many environments.
        device: Where the agent computes.
    """

    def __init__(self, num_envs: int, device: str) -> None:
        super().__init__(collecting(), num_envs, device, together=16)


class PPOLearning(TrainingLoop):
    """PPO in hockey, as the config says that comes along: rollouts, and what is learnt of them.

    Args:
        num_envs: In how many environments.
        device: Where the agent computes.
    """

    def __init__(self, num_envs: int, device: str) -> None:
        super().__init__(shipped_endless("hockey_ppo"), num_envs, device, together=1)
        self._together = self.run.agent.settings.rollout_steps
        self.advance(self._together * (_RECORDED if device == "cuda" else 1))

    def take_round(self, seconds: float) -> float:
        """Go on for about so long; returns the environment steps of a second.

        Whole rollouts need no steps before, in which nothing would be learnt.
        """
        done, elapsed = self.go_on(seconds)
        return done / elapsed


class CurriculumSteps(TrainingLoop):
    """So many environment steps of the guide's own config, each with its update.

    Args:
        num_envs: In how many environments.
        device: Where the agent computes.
        steps: Environment steps of a round.
    """

    def __init__(self, num_envs: int, device: str, steps: int) -> None:
        together = max(1, steps // num_envs)
        super().__init__(shipped_endless("curriculum_simple"), num_envs, device, together)
        trainee = self.run._parts.main
        while trainee.pace.is_warming_up:
            self.advance(1)
        while trainee.updates < _RECORDED:
            self.advance(1)
        self._begun = self.run.steps, self.run.updates

    def take_round(self, seconds: float) -> float:  # noqa: ARG002
        """Take the steps of a round, however long that takes; returns how many in a second."""
        self.advance(max(1, self._together // 20))
        done, elapsed = self.go_on(0.0)
        steps, updates = self._begun
        made = (self.run.updates - updates) / (self.run.steps - steps)
        self.note = f"{made:.2f} updates a step"
        return done / elapsed
