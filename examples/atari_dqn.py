"""Atari by DQN: a replay memory, a target network, and exploration that becomes less and less.

    python examples/atari_dqn.py [STEPS]

Eight games of Pong are stepped side by side, and the network looks at all of them in one pass.
Returns lie between -21 and 21; random play has about -20. The default, a minute of processor time,
shows that all of it works, not that it has learnt: returns stay near -20. To learn takes several
hundred thousand steps and a GPU, which is used if there is one. In one run of 600,000 steps, on 16
cores and an H200, the mean return was -17.8 after 100,000 steps, -8.3 after 300,000, -1.3 after
500,000 and 0.6 after 550,000, with 1,400 steps/s. It was still on the rise when the run was cut
short after 7 minutes, so how well it plays in the end was not seen.
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
MEMORY = 100_000 // NUM_ENVS  # steps of each slot that are remembered
WARMUP = min(5_000, STEPS // 4)  # steps before the first update
STEPS_PER_UPDATE = 8
UPDATES_PER_TARGET = 250  # how long a target network stays what it is
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH = 256 if DEVICE == "cuda" else 64  # 256 take a core five times as long
DISCOUNT = 0.99
AHEAD = 3  # how many steps' rewards are added up before the rest is estimated
EXPLORATION = 1.0, 0.02  # the share of random actions, at the beginning and in the end
EXPLORATION_STEPS = min(STEPS // 8, 50_000)


class Memory:
    """What was seen, done and gained, a row for each step of all slots.

    A stack is four frames, of which the next one has three again, so only the newest is kept.
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
        """Remember a step; what it led to are the frames of the next row."""
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
        """Steps from anywhere: stacks, actions, and what followed within AHEAD steps.

        That is the rewards, the last stacks, whether the episode went on, and whether all of this
        was one episode's, which is what can be learnt from.
        """
        oldest, newest = max(self.rows - MEMORY, 0) + 3, self.rows - AHEAD
        rows = torch.randint(oldest, newest, (size,), device=DEVICE)
        slots = torch.randint(NUM_ENVS, (size,), device=DEVICE)
        gained = torch.zeros(size, device=DEVICE)
        goes_on, is_whole = torch.ones_like(gained), torch.ones_like(gained)
        for ahead in range(AHEAD):
            at = (rows + ahead) % MEMORY, slots
            is_whole *= torch.where(goes_on > 0, self.is_step[at], 1)
            gained += DISCOUNT**ahead * goes_on * self.rewards[at]
            goes_on = goes_on * (1 - self.terminated[at])
        taken = self.actions[rows % MEMORY, slots]
        after = self.stacks(rows + AHEAD, slots)
        return self.stacks(rows, slots), taken, gained, after, goes_on, is_whole

    def stacks(self, rows, slots):
        """The last four frames up to these rows; before an episode's first one there is none."""
        back = torch.arange(3, -1, -1, device=DEVICE)
        seen = self.frames[(rows[:, None] - back) % MEMORY, slots[:, None]]
        ages = self.ages[rows % MEMORY, slots]
        return seen * (ages[:, None] >= back)[:, :, None, None]


def network(actions):
    """Two convolutions and a hidden layer, as DQN had them at first."""
    convolutions = nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU()
    return nn.Sequential(
        *convolutions, nn.Flatten(), nn.Linear(2592, 256), nn.ReLU(), nn.Linear(256, actions)
    )


def values(net, stacks):
    """What each action is worth in each of these situations."""
    return net(stacks.float() / 255)


torch.manual_seed(0)
torch.set_num_threads(1)  # workers need the cores
rng = np.random.default_rng(0)

envs = shoal.make("ALE/Pong-v5", num_envs=NUM_ENVS, statistics=True)
actions_known = int(envs.single_action_space.n)
online, target = network(actions_known).to(DEVICE), network(actions_known).to(DEVICE)
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=2.5e-4, fused=True)
memory = Memory()


def learn():
    """Make an update, and return its loss."""
    stacks, taken, gained, after, goes_on, is_whole = memory.sample(BATCH)
    with torch.no_grad():
        # Double DQN: one network chooses what comes next, the other one says what it is worth.
        choice = values(online, after).argmax(1, keepdim=True)
        rest = values(target, after).gather(1, choice)[:, 0]
        goals = gained + DISCOUNT**AHEAD * goes_on * rest
    guesses = values(online, stacks).gather(1, taken[:, None])[:, 0]
    errors = nn.functional.smooth_l1_loss(guesses, goals, reduction="none")
    loss = (errors * is_whole).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


observations, _ = envs.reset(seed=0)
ended, ages = np.zeros(NUM_ENVS, bool), np.zeros(NUM_ENVS, np.int64)
returns, losses = deque(maxlen=40), deque(maxlen=1_000)
updates, began = 0, time.perf_counter()
reports = iter(np.linspace(STEPS / 12, STEPS, 12))
report = next(reports)

for steps in count(NUM_ENVS, NUM_ENVS):
    first, last = EXPLORATION
    exploration = max(first + (last - first) * steps / EXPLORATION_STEPS, last)
    with torch.no_grad():
        best = values(online, torch.as_tensor(observations, device=DEVICE)).argmax(1).cpu().numpy()
    explores = rng.random(NUM_ENVS) < exploration
    actions = np.where(explores, rng.integers(actions_known, size=NUM_ENVS), best)
    frames, was_over = observations[:, -1], ended
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    # In the step after its last one a slot is reset, whatever is sent: nothing to learn from.
    memory.add(frames, ages, actions, rewards, terminated, ~was_over)
    ages = np.where(was_over, 0, ages + 1)
    ended = terminated | truncated
    if "episode" in infos:
        returns.extend(infos["episode"]["r"][infos["_episode"]])

    while steps > WARMUP and updates < (steps - WARMUP) // STEPS_PER_UPDATE:
        losses.append(learn())
        updates += 1
        if updates % UPDATES_PER_TARGET == 0:
            target.load_state_dict(online.state_dict())

    if steps >= report:
        pace = steps / (time.perf_counter() - began)
        loss = f"{torch.stack(list(losses)).mean():.4f}" if losses else "nothing yet"
        mean = f"{np.mean(returns):.1f}" if returns else "unknown yet"
        print(f"{steps} steps, {pace:.0f}/s, {updates} updates: loss {loss}; mean return {mean}")
        if steps >= STEPS:
            break
        report = next(reports)
envs.close()
