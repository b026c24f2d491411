"""A policy that acts for whichever slots are ready first, while workers step the others.

Most steps of this environment take a millisecond, one in ten takes twenty. In lockstep the policy
waits for the slowest slot each time; with `send` and `recv` it never does. The last line says how
many times as many steps that makes of the same seconds; on two busy cores it was 2.3.
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
    """Takes its time now and then, as a simulator does when much happens at once."""

    def step(self, action):
        """Step, and wait for what cannot be computed faster."""
        time.sleep(0.020 if self.np_random.random() < 0.1 else 0.001)
        return super().step(action)


torch.manual_seed(0)
torch.set_num_threads(1)  # for networks this small more are slower, and workers need the cores
policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))


@torch.no_grad()
def act(observations):
    """An action for each slot of a batch, however many there are."""
    logits = policy(torch.from_numpy(observations))
    return torch.distributions.Categorical(logits=logits).sample().numpy()


def in_lockstep(envs):
    """Environment steps in a while, all slots together each time."""
    observations, _ = envs.reset(seed=0)
    steps, end = 0, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        observations, *_ = envs.step(act(observations))
        steps += envs.num_envs
    return steps


def as_they_come(envs):
    """Environment steps in as long a while, a few slots at a time."""
    observations, _ = envs.reset(seed=0)
    envs.send(act(observations))  # all of them are under way from here on
    steps, end = 0, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        batch = envs.recv(min_slots=READY)  # these, or more if more are ready
        envs.send(act(batch.observations), batch.slots)
        steps += len(batch.slots)
    return steps


with shoal.make(
    "CartPole-v1", NUM_ENVS, backend="process", workers=NUM_ENVS, wrappers=[Uneven]
) as envs:
    together, apart = in_lockstep(envs), as_they_come(envs)

print(f"{together} steps in lockstep in {SECONDS} s")
print(f"{apart} steps as slots were ready: {apart / together:.1f} times as many")
