"""Step three Atari games in one vector, then save and restore a slot.

The script prints the scores of each game's finished episodes (cut after 1,200 frames) with random
actions. At the end it saves a slot, steps it, restores it and steps it again, which gives the same
observation twice.
"""

import numpy as np

from shoal.atari import AtariVectorEnv

GAMES = ["breakout", "seaquest", "space_invaders"]
STEPS = 400

with AtariVectorEnv(GAMES, statistics=True, max_num_frames_per_episode=1200) as envs:
    envs.action_space.seed(0)
    observations, infos = envs.reset(seed=0)
    scores = {game: [] for game in envs.games}
    for _ in range(STEPS):
        observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        for slot in np.flatnonzero(infos.get("_episode", ())):
            scores[envs.games[slot]].append(int(infos["episode"]["r"][slot]))

    saved = envs.save(slots=[0])
    first = envs.step(np.array([3, 0, 0]))[0][0]
    envs.restore(saved, slots=[0])
    again = envs.step(np.array([3, 0, 0]))[0][0]

for game, game_scores in scores.items():
    print(f"{game}: {game_scores}")
print(f"{STEPS * len(GAMES)} steps of observations {observations.shape[1:]}")
print(f"same observation after restoring: {np.array_equal(first, again)}")
