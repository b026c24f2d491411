"""Step 64 CartPoles with a policy for the whole batch, and print the mean return.

The policy holds the pole up for nearly all of the 500 steps of an episode. A random policy reaches
22.
"""

import numpy as np

import shoal

NUM_ENVS = 64
STEPS = 500

envs = shoal.make("CartPole-v1", num_envs=NUM_ENVS, statistics=True)
observations, infos = envs.reset(seed=0)

returns: list[float] = []
for _ in range(STEPS):
    # Push the cart to the side to which the pole falls.
    angle, angular_velocity = observations[:, 2], observations[:, 3]
    actions = (angle + angular_velocity > 0).astype(np.int64)
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    if "episode" in infos:
        returns.extend(infos["episode"]["r"][infos["_episode"]])
envs.close()

print(f"{NUM_ENVS * STEPS} steps, {len(returns)} episodes, mean return {np.mean(returns):.0f}")
