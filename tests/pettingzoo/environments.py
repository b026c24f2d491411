"""Parallel environments whose agents join and end during an episode."""

import os

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

AGENTS = ["ann", "bob", "cyd"]


class Crowd(ParallelEnv):
    """Environment whose agents end randomly; one joins late, and some have infos.

    Args:
        mixed: Whether agents have different spaces.
        limit: The step in which all remaining agents are truncated.
        infos: Whether there are infos; ``"common"``: also one that belongs to no agent.
        strict: Whether invalid actions, and actions of agents that have ended, are errors.
    """

    metadata = {"name": "crowd_v0", "render_modes": ["rgb_array"]}

    def __init__(self, mixed=False, limit=12, infos=True, strict=True):
        self.possible_agents = list(AGENTS)
        self.agents = []
        self.render_mode = "rgb_array"
        self.mixed, self.limit, self.with_infos, self.strict = mixed, limit, infos, strict
        self.closed = 0
        self._random = np.random.default_rng(0)
        same = (_masked(), spaces.Discrete(4, start=2))
        different = {
            "ann": same,
            "bob": (spaces.Box(-9, 9, (2, 2), np.float32), spaces.Box(-1, 1, (2,), np.float32)),
            "cyd": (spaces.Tuple((spaces.Discrete(9), spaces.Text(8))), spaces.MultiBinary(3)),
        }
        self._spaces = different if mixed else {agent: (_masked(), same[1]) for agent in AGENTS}

    def observation_space(self, agent):
        return self._spaces[agent][0]

    def action_space(self, agent):
        return self._spaces[agent][1]

    def reset(self, seed=None, options=None):
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self.time = 0
        self.agents = ["ann", "bob"] if self._random.random() < 0.5 else list(AGENTS)
        infos = {agent: {} for agent in self.agents}
        if self.with_infos:
            infos["ann"] = {"options": str(options)}
        return {agent: self._observe(agent, 0.0) for agent in self.agents}, infos

    def step(self, actions):
        if self.strict:
            assert set(actions) == set(self.agents)
            assert all(action in self.action_space(agent) for agent, action in actions.items())
        self.time += 1
        acted = list(self.agents)
        sums = {agent: float(np.sum(action)) for agent, action in actions.items()}
        terminated = {agent: bool(self._random.random() < 0.15) for agent in acted}
        late = self.time >= self.limit
        truncated = {agent: late or bool(self._random.random() < 0.1) for agent in acted}
        self.agents = [agent for agent in acted if not terminated[agent] and not truncated[agent]]
        if self.time == 3 and "cyd" not in acted and self.agents:
            self.agents.append("cyd")
        observed = [*acted, *(agent for agent in self.agents if agent not in acted)]
        infos = {agent: {} for agent in observed}
        if self.with_infos == "common":
            infos["weather"] = {"wind": self.time}
        if self.with_infos and self.time % 2:
            infos[acted[0]] = {"time": self.time, "action_mask": np.arange(4) % 2}
        return (
            {agent: self._observe(agent, sums.get(agent, 0.0)) for agent in observed},
            {agent: sums[agent] + self.time for agent in acted},
            terminated,
            truncated,
            infos,
        )

    def _observe(self, agent, offset):
        noise = self._random.standard_normal(4).astype(np.float32) + np.float32(offset)
        if not self.mixed or agent == "ann":
            mask = self._random.integers(0, 2, 4).astype(np.int8)
            return {"observation": noise, "action_mask": mask}
        if agent == "bob":
            return noise.reshape(2, 2)
        return int(self._random.integers(9)), f"t{self.time}"

    def pid(self):
        return os.getpid()

    def render(self):
        return np.full((2, 2, 3), self.time, np.uint8)

    def close(self):
        self.closed += 1


def _masked():
    return spaces.Dict(
        {"observation": spaces.Box(-np.inf, np.inf, (4,)), "action_mask": spaces.MultiBinary(4)}
    )


class Exploding(Crowd):
    """Environment that exits its process in a given step."""

    def __init__(self, at):
        super().__init__(infos=False, limit=1000)
        self.at, self.steps = at, 0

    def step(self, actions):
        self.steps += 1
        if self.steps == self.at:
            os._exit(7)
        return super().step(actions)
