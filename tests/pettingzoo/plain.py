"""Reference implementation of a vector of parallel environments: a plain loop."""

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.pettingzoo._team_env import empty_observation


class PlainLoop:
    """Steps environments one by one; results are a dict for each agent in each environment."""

    def __init__(self, envs, mode):
        self.envs, self.mode = envs, mode
        self.agents = envs[0].possible_agents
        self.over = [True] * len(envs)

    def reset(self, seeds, options=None, only=None):
        chosen = range(len(self.envs)) if only is None else only
        return {number: self._reset(number, seeds[number], options) for number in chosen}

    def step(self, actions):
        """``actions`` has for each environment a dict of all agents' actions."""
        return [self._step(number, acts) for number, acts in enumerate(actions)]

    def _reset(self, number, seed=None, options=None):
        kwargs = {} if options is None else {"options": options}
        observations, infos = self.envs[number].reset(seed=seed, **kwargs)
        self.over[number] = False
        return {agent: self._row(number, agent, observations, infos=infos) for agent in self.agents}

    def _step(self, number, acts):
        env = self.envs[number]
        if self.over[number]:
            assert self.mode is AutoresetMode.NEXT_STEP
            return self._reset(number)
        results = env.step({agent: acts[agent] for agent in env.agents})
        rows = {agent: self._row(number, agent, *results) for agent in self.agents}
        self.over[number] = not env.agents
        if self.mode is not AutoresetMode.SAME_STEP:
            return rows
        first = self._reset(number) if self.over[number] else None
        for agent, row in rows.items():
            if row["terminated"] or row["truncated"]:
                row["final_obs"], row["final_info"] = row["observation"], row["info"]
                row["observation"] = empty_observation(env.observation_space(agent))
                row["info"] = {}
            if first is not None:
                for key in ("observation", "info", "alive"):
                    row[key] = first[agent][key]
        return rows

    def _row(
        self, number, agent, observations, rewards=(), terminations=(), truncations=(), infos=()
    ):
        env = self.envs[number]
        has_acted = agent in rewards
        return {
            "observation": observations[agent]
            if agent in observations
            else empty_observation(env.observation_space(agent)),
            "reward": float(rewards[agent]) if has_acted else 0.0,
            "terminated": bool(has_acted and terminations[agent]),
            "truncated": bool(has_acted and truncations[agent]),
            "alive": agent in env.agents,
            "info": dict(infos).get(agent, {}),
        }


def column(rows, key):
    """Return the values of a key in all rows as an array."""
    return np.array([row[key] for row in rows])
