"""Play a thousand hockey matches at once between the weak and the strong scripted player.

Each match is a slot. The last line prints the results: the weak player loses more matches than it
wins.
"""

import numpy as np

import shoal
from shoal.hockey import BasicOpponents

MATCHES = 1000

weak, strong = BasicOpponents(MATCHES, weak=True, seed=1), BasicOpponents(MATCHES, seed=2)
actions = np.empty((MATCHES, 8), np.float32)
winners, finished = np.zeros(MATCHES, int), np.zeros(MATCHES, bool)
steps = 0

with shoal.make("shoal/Hockey-v0", num_envs=MATCHES) as envs:
    observations, _ = envs.reset(seed=0)
    while not finished.all():
        # Each player observes from its own side and writes its half of the actions.
        weak.act(observations[:, 0], out=actions[:, :4])
        strong.act(observations[:, 1], out=actions[:, 4:])
        observations, _, terminated, truncated, infos = envs.step(actions)
        ends = ~finished & (terminated | truncated)
        winners[ends] = infos["winner"][ends, 0]
        finished |= ends
        steps += MATCHES

won, drawn, lost = ((winners == result).sum() for result in (1, 0, -1))
print(f"weak player: {won} won, {drawn} drawn, {lost} lost of {MATCHES} matches in {steps} steps")
