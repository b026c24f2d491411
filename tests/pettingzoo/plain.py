"""What a vector of parallel environments must do: a loop over them, with nothing clever in it."""

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.pettingzoo._team_env import nothing_of


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
        given = {} if options is None else {"options": options}
        shown, infos = self.envs[number].reset(seed=seed, **given)
        self.over[number] = False
        return {agent: self._row(number, agent, shown, infos=infos) for agent in self.agents}

    def _step(self, number, acts):
        env = self.envs[number]
        if self.over[number]:
            assert self.mode is AutoresetMode.NEXT_STEP
            return self._reset(number)
        shown, *results, infos = env.step({agent: acts[agent] for agent in env.agents})
        rows = {agent: self._row(number, agent, shown, *results, infos) for agent in self.agents}
        self.over[number] = not env.agents
        if self.mode is not AutoresetMode.SAME_STEP:
            return rows
        begun = self._reset(number) if self.over[number] else None
        for agent, row in rows.items():
            if row["terminated"] or row["truncated"]:
                row["final_obs"], row["final_info"] = row["observation"], row["info"]
                row["observation"] = nothing_of(env.observation_space(agent))
                row["info"] = {}
            if begun is not None:
                for key in ("observation", "info", "alive"):
                    row[key] = begun[agent][key]
        return rows

    def _row(self, number, agent, shown, rewards=(), terms=(), cuts=(), infos=()):
        env = self.envs[number]
        told = agent in rewards
        return {
            "observation": shown[agent]
            if agent in shown
            else nothing_of(env.observation_space(agent)),
            "reward": float(rewards[agent]) if told else 0.0,
            "terminated": bool(told and terms[agent]),
            "truncated": bool(told and cuts[agent]),
            "alive": agent in env.agents,
            "info": dict(infos).get(agent, {}),
        }


def column(rows, key):
    """One thing of all of these rows, as an array."""
    return np.array([row[key] for row in rows])
