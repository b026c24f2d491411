"""Training runs that are advanced step by step: the loop of ``shoal.train`` itself."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.learning.configs import NEVER, bundled_endless, collecting
from benchmarks.learning.exercise import Exercise
from shoal._bench.contenders.base import SEED
from shoal.train._config import Config
from shoal.train._reporting import Reporter
from shoal.train._runs.folder import RunFolder, RunPlan
from shoal.train._runs.run import Run

__all__ = ["Collecting", "CurriculumSteps", "PPOLearning", "TrainingLoop"]

_RECORDED = 8
"""The number of updates or rollouts after which all CUDA graphs are recorded."""


class TrainingLoop(Exercise):
    """The loop of a training run, without evaluations and checkpoints.

    Its unit is environment steps, summed over all slots.

    Args:
        config: The config of the run.
        num_envs: The number of environments.
        device: The device of networks.
        vector_steps: The steps of all slots that ``once`` does.
    """

    def __init__(self, config: Config, num_envs: int, device: str, vector_steps: int) -> None:
        super().__init__(device)
        self._vector_steps = vector_steps
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
            # Run.train starts like this, and then runs to the end of the curriculum.
            task, progress = self.run._parts.task, self.run._progress
            task.begin(progress.phase, progress)
            task.reset()
            self._resources = resources.pop_all()

    def once(self) -> int:
        """Step all slots, make the updates that are due, and return the environment steps."""
        return self.advance(self._vector_steps)

    def advance(self, steps: int) -> int:
        """Step all slots this number of times and return the number of environment steps."""
        run, before = self.run, self.run.steps
        for _ in range(steps):
            run._step()
            run._housekeeping()
        return run.steps - before

    def close(self) -> None:
        """Close the run and remove its folder."""
        self._resources.close()


class Collecting(TrainingLoop):
    """DDDQN in hockey that acts and stores transitions, but never updates.

    Args:
        num_envs: The number of environments.
        device: The device of networks.
    """

    def __init__(self, num_envs: int, device: str) -> None:
        super().__init__(collecting(), num_envs, device, vector_steps=16)


class PPOLearning(TrainingLoop):
    """PPO in hockey, with the bundled config: rollouts and updates.

    Args:
        num_envs: The number of environments.
        device: The device of networks.
    """

    def __init__(self, num_envs: int, device: str) -> None:
        super().__init__(bundled_endless("hockey_ppo"), num_envs, device, vector_steps=1)
        self._vector_steps = self.run.agent.settings.rollout_steps
        self.advance(self._vector_steps * (_RECORDED if device == "cuda" else 1))

    def sample(self, seconds: float) -> float:
        """Learn from whole rollouts for this time and return the environment steps per second."""
        done, elapsed = self.repeat(seconds)
        return done / elapsed


class CurriculumSteps(TrainingLoop):
    """A fixed number of environment steps of the config ``curriculum_simple``.

    Args:
        num_envs: The number of environments.
        device: The device of networks.
        steps: The number of environment steps of a round.
    """

    def __init__(self, num_envs: int, device: str, steps: int) -> None:
        vector_steps = max(1, steps // num_envs)
        super().__init__(bundled_endless("curriculum_simple"), num_envs, device, vector_steps)
        trainee = self.run._parts.main
        while trainee.pace.is_warming_up:
            self.advance(1)
        while trainee.updates < _RECORDED:
            self.advance(1)

    def sample(self, seconds: float) -> float:  # noqa: ARG002
        """Do the steps of a round, however long it takes, and return the steps per second.

        Raises:
            RuntimeError: There was not one update per environment step.
        """
        self.advance(max(1, self._vector_steps // 20))
        before = self.run.steps, self.run.updates
        done, elapsed = self.repeat(0.0)
        steps, updates = self.run.steps - before[0], self.run.updates - before[1]
        # On a GPU, the last updates of a round may be counted in the next one.
        if abs(updates - steps) > 0.05 * steps:
            raise RuntimeError(f"{updates} updates in {steps} steps; expected one per step")
        return done / elapsed
