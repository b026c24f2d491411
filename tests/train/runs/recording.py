"""Looks over the shoulder of runs: what their agents are given to remember, and by whom."""

import numpy as np

from shoal.train._runs.run import Run


class Recorder:
    """Keeps what runs do that begin after it.

    Args:
        monkeypatch: Of pytest.
    """

    def __init__(self, monkeypatch):
        self.runs = []
        self.steps = []
        """What the agent was given, step by step: copies."""
        self.episodes = []
        """(slot, phase, mode, opponent, deterministic) of each episode that was begun."""
        begin = Run.__init__
        recorder = self

        def recorded(run, plan, folder, env):
            begin(run, plan, folder, env)
            recorder.runs.append(run)
            recorder._watch(run)

        monkeypatch.setattr(Run, "__init__", recorded)

    @property
    def parts(self):
        return self.runs[-1]._parts

    @property
    def agent(self):
        return self.runs[-1].agent

    @property
    def task(self):
        return self.parts.task

    def _watch(self, run):
        agent, task = run.agent, run._parts.task
        remember = agent.remember

        def remembered(step):
            self.steps.append(type(step)(*(np.array(part) for part in step)))
            remember(step)

        agent.remember = remembered
        if hasattr(task, "_prepare"):
            prepare = task._prepare

            def prepared(slot):
                prepare(slot)
                opponent = task.opponents[int(task.playing[slot])]
                mode = int(task._pool.parameter(slot, "mode"))
                phase = task._phase.name
                self.episodes.append((slot, phase, mode, opponent.name, opponent.deterministic))

            task._prepare = prepared
