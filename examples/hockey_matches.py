"""A thousand matches of hockey at once, between the weak and the strong scripted player.

Each match is a slot, and ends for itself. The last line says how they went: the weak player loses
more than it wins.
"""

import numpy as np

import shoal
from shoal.hockey import BasicOpponents

MATCHES = 1000

weak, strong = BasicOpponents(MATCHES, weak=True, seed=1), BasicOpponents(MATCHES, seed=2)
actions = np.empty((MATCHES, 8), np.float32)
winners, over = np.zeros(MATCHES, int), np.zeros(MATCHES, bool)
steps = 0

with shoal.make("shoal/Hockey-v0", num_envs=MATCHES) as envs:
    observations, _ = envs.reset(seed=0)
    while not over.all():
        # Each player sees the match from its own side, and acts in its half of the array.
        weak.act(observations[:, 0], out=actions[:, :4])
        strong.act(observations[:, 1], out=actions[:, 4:])
        observations, _, terminated, truncated, infos = envs.step(actions)
        ends = ~over & (terminated | truncated)
        winners[ends] = infos["winner"][ends, 0]
        over |= ends
        steps += MATCHES

won, drawn, lost = ((winners == result).sum() for result in (1, 0, -1))
print(
    f"the weak one won {won}, drew {drawn} and lost {lost} of {MATCHES} matches, in {steps} steps"
)
