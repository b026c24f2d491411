"""Environments in the actors of a Ray cluster: here a small one on this machine.

On a cluster that is there already, `address="auto"` is all that changes. The first line says which
actors there are and what they host, the last one how many steps came back from them.
"""

import numpy as np

import shoal

envs = shoal.make(
    "CartPole-v1",
    num_envs=16,
    backend="ray",
    workers=2,  # actors, each with its share of the slots
    cpus_per_worker=0.5,
    placement="spread",
    on_crash="restart",  # a lost actor, or node, costs its slots one episode
)
print(envs.plan)
envs.reset(seed=0)
rng = np.random.default_rng(0)

# Two groups in turn: while a policy looks at one, the actors step the other.
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
