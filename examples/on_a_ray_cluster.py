"""Step environments in the actors of a Ray cluster, here a small one on this machine.

To use an existing cluster, add `address="auto"`. The first line of the output describes the actors
and their pools, the last one the number of steps received.
"""

import numpy as np

import shoal

envs = shoal.make(
    "CartPole-v1",
    num_envs=16,
    backend="ray",
    workers=2,  # actors, each with a share of the slots
    cpus_per_worker=0.5,
    placement="spread",
    on_crash="restart",  # the loss of an actor truncates one episode of its slots
)
print(envs.plan)
envs.reset(seed=0)
rng = np.random.default_rng(0)

# Double buffering: the actors step one group while the policy computes actions for the other.
groups = [np.arange(0, 16, 2), np.arange(1, 16, 2)]
for slots in groups:
    envs.send(rng.integers(0, 2, len(slots)), slots)
steps = 0
for _ in range(100):
    for slots in groups:
        batch = envs.recv(slots=slots)
        steps += len(batch.slots)
        envs.send(rng.integers(0, 2, len(slots)), slots)
envs.close(terminate=True)

print(f"{steps} steps")
