"""Step whichever slots are ready, in two groups, so that a policy can work on one of them."""

import numpy as np

import shoal

NUM_ENVS = 8
GROUPS = np.arange(NUM_ENVS).reshape(2, -1)

envs = shoal.make("Acrobot-v1", num_envs=NUM_ENVS)
envs.reset(seed=0)
rng = np.random.default_rng(0)

# Both groups are in flight before the first one is waited for.
for slots in GROUPS:
    envs.send(rng.integers(0, 3, len(slots)), slots)

steps = 0
while steps < 2_000:
    batch = envs.recv(min_slots=NUM_ENVS // 2)
    steps += len(batch.slots)
    actions = rng.integers(0, 3, len(batch.slots))  # a policy would look at batch.observations
    envs.send(actions, batch.slots)
envs.recv()
envs.close()

print(f"{steps} steps in batches of {NUM_ENVS // 2}")
