"""Three Atari games in one vector: scores of random play, and a slot that goes back in time.

One should see the scores of each game's finished episodes (an episode is cut after 1,200 frames
here). In the end a slot is saved, stepped, restored and stepped again, with the same picture both
times.
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

for game, reached in scores.items():
    print(f"{game}: {reached}")
print(f"{STEPS * len(GAMES)} steps of observations {observations.shape[1:]}")
print(f"the same step again is the same picture: {np.array_equal(first, again)}")
