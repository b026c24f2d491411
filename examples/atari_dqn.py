"""DQN on Atari, with a replay memory, a target network and decaying exploration.

    python examples/atari_dqn.py [STEPS]

Eight games of Pong are stepped together, with one forward pass for all of them. Returns are between
-21 and 21; a random policy reaches about -20. The default, a minute of processor time, is too short
to learn. Learning takes several hundred thousand steps and a GPU, which is used if there is one. In
one run of 600,000 steps on 16 cores and an H200, at 1,400 steps/s, the mean return was -17.8 after
100,000 steps, -8.3 after 300,000, -1.3 after 500,000 and 0.6 after 550,000, and still rising.
"""

import sys
import time
from collections import deque
from itertools import count

import numpy as np
import torch
from torch import nn

import shoal

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
NUM_ENVS = 8
MEMORY = 100_000 // NUM_ENVS  # steps per slot in the replay memory
WARMUP = min(5_000, STEPS // 4)  # steps before the first update
STEPS_PER_UPDATE = 8
UPDATES_PER_TARGET = 250  # updates between two copies to the target network
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH = 256 if DEVICE == "cuda" else 64  # a batch of 256 takes a core five times as long
DISCOUNT = 0.99
AHEAD = 3  # n of the n-step returns
EXPLORATION = 1.0, 0.02  # initial and final share of random actions
EXPLORATION_STEPS = min(STEPS // 8, 50_000)


class Memory:
    """A replay memory with one row per step of all slots.

    Two consecutive stacks share three of their four frames, so only the newest frame is stored.
    """

    def __init__(self):
        self.frames = torch.empty(MEMORY, NUM_ENVS, 84, 84, dtype=torch.uint8, device=DEVICE)
        self.ages = torch.zeros(MEMORY, NUM_ENVS, dtype=torch.int64, device=DEVICE)
        self.actions = torch.zeros(MEMORY, NUM_ENVS, dtype=torch.int64, device=DEVICE)
        self.rewards = torch.zeros(MEMORY, NUM_ENVS, device=DEVICE)
        self.terminated = torch.zeros(MEMORY, NUM_ENVS, device=DEVICE)
        self.is_step = torch.zeros(MEMORY, NUM_ENVS, device=DEVICE)
        self.rows = 0

    def add(self, frames, ages, actions, rewards, terminated, is_step):
        """Store a step. The next row has the frames that follow it."""
        row = self.rows % MEMORY
        for column, value in (
            (self.frames, frames),
            (self.ages, ages),
            (self.actions, actions),
            (self.rewards, rewards),
            (self.terminated, terminated),
            (self.is_step, is_step),
        ):
            column[row] = torch.as_tensor(value)
        self.rows += 1

    def sample(self, size):
        """Sample stacks, actions, n-step rewards, the stacks AHEAD steps later, and two masks.

        The first mask says whether the episode continued, the second whether all rows belong to one
        episode, so that the sample can be used.
        """
        oldest, newest = max(self.rows - MEMORY, 0) + 3, self.rows - AHEAD
        rows = torch.randint(oldest, newest, (size,), device=DEVICE)
        slots = torch.randint(NUM_ENVS, (size,), device=DEVICE)
        rewards = torch.zeros(size, device=DEVICE)
        continues, is_valid = torch.ones_like(rewards), torch.ones_like(rewards)
        for ahead in range(AHEAD):
            at = (rows + ahead) % MEMORY, slots
            is_valid *= torch.where(continues > 0, self.is_step[at], 1)
            rewards += DISCOUNT**ahead * continues * self.rewards[at]
            continues = continues * (1 - self.terminated[at])
        actions = self.actions[rows % MEMORY, slots]
        following = self.stacks(rows + AHEAD, slots)
        return self.stacks(rows, slots), actions, rewards, following, continues, is_valid

    def stacks(self, rows, slots):
        """The last four frames up to these rows; frames before the episode are zeros."""
        back = torch.arange(3, -1, -1, device=DEVICE)
        frames = self.frames[(rows[:, None] - back) % MEMORY, slots[:, None]]
        ages = self.ages[rows % MEMORY, slots]
        return frames * (ages[:, None] >= back)[:, :, None, None]


def network(actions):
    """The first network of DQN: two convolutions and a hidden layer."""
    convolutions = nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU()
    return nn.Sequential(
        *convolutions, nn.Flatten(), nn.Linear(2592, 256), nn.ReLU(), nn.Linear(256, actions)
    )


def values(net, stacks):
    """The value of each action for each stack."""
    return net(stacks.float() / 255)


torch.manual_seed(0)
torch.set_num_threads(1)  # leave the other cores to the workers
rng = np.random.default_rng(0)

envs = shoal.make("ALE/Pong-v5", num_envs=NUM_ENVS, statistics=True)
num_actions = int(envs.single_action_space.n)
online, target = network(num_actions).to(DEVICE), network(num_actions).to(DEVICE)
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=2.5e-4, fused=True)
memory = Memory()


def learn():
    """Do one update and return its loss."""
    stacks, actions, rewards, following, continues, is_valid = memory.sample(BATCH)
    with torch.no_grad():
        # Double DQN: the online network chooses the next action, the target network evaluates it.
        best = values(online, following).argmax(1, keepdim=True)
        next_values = values(target, following).gather(1, best)[:, 0]
        targets = rewards + DISCOUNT**AHEAD * continues * next_values
    predictions = values(online, stacks).gather(1, actions[:, None])[:, 0]
    errors = nn.functional.smooth_l1_loss(predictions, targets, reduction="none")
    loss = (errors * is_valid).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


observations, _ = envs.reset(seed=0)
ended, ages = np.zeros(NUM_ENVS, bool), np.zeros(NUM_ENVS, np.int64)
returns, losses = deque(maxlen=40), deque(maxlen=1_000)
updates, start = 0, time.perf_counter()
reports = iter(np.linspace(STEPS / 12, STEPS, 12))
report = next(reports)

for steps in count(NUM_ENVS, NUM_ENVS):
    first, last = EXPLORATION
    exploration = max(first + (last - first) * steps / EXPLORATION_STEPS, last)
    with torch.no_grad():
        best = values(online, torch.as_tensor(observations, device=DEVICE)).argmax(1).cpu().numpy()
    explores = rng.random(NUM_ENVS) < exploration
    actions = np.where(explores, rng.integers(num_actions, size=NUM_ENVS), best)
    frames, is_reset = observations[:, -1], ended
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    # The step after the end of an episode only resets the slot, so it is not used for updates.
    memory.add(frames, ages, actions, rewards, terminated, ~is_reset)
    ages = np.where(is_reset, 0, ages + 1)
    ended = terminated | truncated
    if "episode" in infos:
        returns.extend(infos["episode"]["r"][infos["_episode"]])

    while steps > WARMUP and updates < (steps - WARMUP) // STEPS_PER_UPDATE:
        losses.append(learn())
        updates += 1
        if updates % UPDATES_PER_TARGET == 0:
            target.load_state_dict(online.state_dict())

    if steps >= report:
        rate = steps / (time.perf_counter() - start)
        loss = f"{torch.stack(list(losses)).mean():.4f}" if losses else "unknown"
        mean = f"{np.mean(returns):.1f}" if returns else "unknown"
        print(f"{steps} steps, {rate:.0f}/s, {updates} updates: loss {loss}; mean return {mean}")
        if steps >= STEPS:
            break
        report = next(reports)
envs.close()
