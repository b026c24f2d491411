"""Recording of the transitions and episodes of runs."""

import numpy as np

from shoal.train._runs.run import Run


class Recorder:
    """Records all runs that are created after it."""

    def __init__(self, monkeypatch):
        self.runs = []
        self.steps = []
        """Copies of the steps passed to the agent."""
        self.episodes = []
        """(slot, phase, mode, opponent, deterministic) of each started episode."""
        init = Run.__init__
        recorder = self

        def recorded_init(run, plan, folder, env):
            init(run, plan, folder, env)
            recorder.runs.append(run)
            recorder._record(run)

        monkeypatch.setattr(Run, "__init__", recorded_init)

    @property
    def parts(self):
        return self.runs[-1]._parts

    @property
    def agent(self):
        return self.runs[-1].agent

    @property
    def task(self):
        return self.parts.task

    def _record(self, run):
        agent, task = run.agent, run._parts.task
        remember = agent.remember

        def recorded_remember(step):
            self.steps.append(type(step)(*(np.array(part) for part in step)))
            remember(step)

        agent.remember = recorded_remember
        if hasattr(task, "_prepare"):
            prepare = task._prepare

            def recorded_prepare(slot):
                prepare(slot)
                opponent = task.opponents[int(task.playing[slot])]
                mode = int(task._pool.parameter(slot, "mode"))
                phase = task._phase.name
                self.episodes.append((slot, phase, mode, opponent.name, opponent.deterministic))

            task._prepare = recorded_prepare
