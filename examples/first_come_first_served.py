"""Step whichever slots are ready, so that a policy never waits for the slowest one."""

import numpy as np

import shoal

NUM_ENVS = 8
BATCH_SIZE = 4

envs = shoal.make("Acrobot-v1", num_envs=NUM_ENVS, backend="process", batch_size=BATCH_SIZE)
envs.reset(seed=0)
rng = np.random.default_rng(0)

# All slots are in flight; half of them are waited for while workers step the others.
envs.send(rng.integers(0, 3, NUM_ENVS))
steps = 0
while steps < 2_000:
    batch = envs.recv()
    steps += len(batch.slots)
    actions = rng.integers(0, 3, len(batch.slots))  # a policy would look at batch.observations
    envs.send(actions, batch.slots)
envs.close()

print(f"{steps} steps in batches of {BATCH_SIZE}")
