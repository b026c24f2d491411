"""Act for the slots that are ready first, while workers step the others.

Most steps of this environment take 1 ms, one in ten takes 20 ms. In lockstep the policy waits for
the slowest slot in every step; with `send` and `recv` it does not. The last line prints how many
times as many steps that gives in the same time. On two busy cores it was 2.3.
"""

import time

import gymnasium as gym
import torch
from torch import nn

import shoal

NUM_ENVS = 8
READY = 2  # slots that the policy waits for
SECONDS = 1.5


class Uneven(gym.Wrapper):
    """Takes longer in some steps, as a simulator does when many objects interact."""

    def step(self, action):
        """Wait, then step."""
        time.sleep(0.020 if self.np_random.random() < 0.1 else 0.001)
        return super().step(action)


torch.manual_seed(0)
torch.set_num_threads(1)  # more threads are slower for networks this small
policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))


@torch.no_grad()
def act(observations):
    """An action for each slot of a batch of any size."""
    logits = policy(torch.from_numpy(observations))
    return torch.distributions.Categorical(logits=logits).sample().numpy()


def in_lockstep(envs):
    """Count the steps with all slots in lockstep."""
    observations, _ = envs.reset(seed=0)
    steps, end = 0, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        observations, *_ = envs.step(act(observations))
        steps += envs.num_envs
    return steps


def first_come(envs):
    """Count the steps with a few slots at a time."""
    observations, _ = envs.reset(seed=0)
    envs.send(act(observations))  # all slots are in flight from here on
    steps, end = 0, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        batch = envs.recv(min_slots=READY)  # at least READY slots
        envs.send(act(batch.observations), batch.slots)
        steps += len(batch.slots)
    return steps


with shoal.make(
    "CartPole-v1", NUM_ENVS, backend="process", workers=NUM_ENVS, wrappers=[Uneven]
) as envs:
    lockstep, asynchronous = in_lockstep(envs), first_come(envs)

print(f"{lockstep} steps in lockstep in {SECONDS} s")
print(f"{asynchronous} steps with send and recv: {asynchronous / lockstep:.1f} times as many")
