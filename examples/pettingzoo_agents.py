"""Parallel environments of PettingZoo, in both shapes: agents as slots, and a batch for each.

First two agents times eight games of rock, paper, scissors make sixteen slots, whose returns lie
around 0. Then a thousand matches of hockey are stepped natively, and their goals counted.
"""

import numpy as np
import pettingzoo

from shoal.pettingzoo import hockey_v0, make

STEPS = 200


def make_game():
    """Rock, paper, scissors: any function that makes a parallel environment will do."""
    return pettingzoo.make("parallel", "classic/rps-v2", max_cycles=15)


# Agents times environments as one batch, which a training loop takes for 16 environments.
with make(make_game, num_envs=8, autoreset_mode="SameStep", statistics=True) as envs:
    observations, infos = envs.reset(seed=0)
    returns = []
    for _ in range(STEPS):
        actions = np.where(infos["alive"], envs.action_space.sample(), 0)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        if "episode" in infos:
            returns.extend(infos["episode"]["r"][infos["_episode"]])
    print(f"{STEPS * envs.num_envs} steps of agents in {envs.plan}")
    print(f"{len(returns)} episodes, with returns from {min(returns):.0f} to {max(returns):.0f}")

# A batch for each agent: a thousand matches of hockey, which are native.
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
