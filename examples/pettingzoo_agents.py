"""Step parallel environments of PettingZoo, with agents as slots and with a batch per agent.

First, two agents in each of eight games of rock, paper, scissors are sixteen slots, with returns
around 0. Then a thousand hockey matches are stepped natively, and their goals counted.
"""

import numpy as np
import pettingzoo

from shoal.pettingzoo import hockey_v0, make

STEPS = 200


def make_game():
    """Make a game; any function that makes a parallel environment works."""
    return pettingzoo.make("parallel", "classic/rps-v2", max_cycles=15)


# Agents as slots: to a training loop these are 16 environments.
with make(make_game, num_envs=8, autoreset_mode="SameStep", statistics=True) as envs:
    observations, infos = envs.reset(seed=0)
    returns = []
    for _ in range(STEPS):
        actions = np.where(infos["alive"], envs.action_space.sample(), 0)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        if "episode" in infos:
            returns.extend(infos["episode"]["r"][infos["_episode"]])
    print(f"{STEPS * envs.num_envs} steps of agents in {envs.plan}")
    print(f"{len(returns)} episodes, returns from {min(returns):.0f} to {max(returns):.0f}")

# A batch per agent: a thousand native hockey matches.
with make(hockey_v0.parallel_env, num_envs=1000, shape="dict") as envs:
    observations, infos = envs.reset(seed=0)
    goals = dict.fromkeys(envs.possible_agents, 0)
    for _ in range(STEPS):
        actions = {
            agent: envs.batched_action_space(agent).sample() for agent in envs.possible_agents
        }
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        for agent in goals:
            goals[agent] += int((terminations[agent] & (infos[agent]["winner"] == 1)).sum())
    print(f"{STEPS * envs.num_envs} steps of matches, goals: {goals}")
