"""PPO in one file, in the manner of CleanRL: all of it, from top to bottom, on one vector.

    python examples/ppo_cleanrl.py --env-id Acrobot-v1 --num-envs 32 --seed 3

`--help` lists the rest. With its defaults the returns of CartPole rise from 20 to several hundred
within a few seconds; 500 is the most that there is.
"""

import argparse
import time
from collections import deque
from dataclasses import dataclass, field, fields

import torch
from torch import nn
from torch.distributions import Categorical

import shoal


def option(default, explanation):
    """A field with a line of explanation, which ``--help`` shows."""
    return field(default=default, metadata={"help": f"{explanation} ({default})"})


@dataclass
class Arguments:
    """All that a run depends on."""

    env_id: str = option("CartPole-v1", "what to train on: a choice of actions, a flat observation")
    seed: int = option(1, "what all randomness follows from")
    total_steps: int = option(80_000, "environment steps altogether")
    num_envs: int = option(16, "slots that are stepped together")
    rollout: int = option(32, "steps of each slot between two updates")
    learning_rate: float = option(1e-3, "Adam's at the beginning; it goes down to nothing")
    discount: float = option(0.99, "what a reward is worth one step later: gamma")
    trace: float = option(0.95, "how far advantages look beyond the next value: lambda")
    epochs: int = option(4, "how often a rollout is learned from")
    minibatches: int = option(4, "parts into which a rollout is divided each time")
    clip: float = option(0.2, "how far the probability of an action may move, as a share")
    entropy: float = option(0.01, "what it is worth to stay undecided")
    value_weight: float = option(0.5, "what the values' error counts next to the policy's")
    max_gradient: float = option(0.5, "the longest gradient that is followed as it is")


class Agent(nn.Module):
    """A policy and a value, with nothing in common but what they see."""

    def __init__(self, inputs, actions):
        super().__init__()
        self.policy = self.layers(inputs, actions, 0.01)
        self.value = self.layers(inputs, 1, 1.0)

    @staticmethod
    def layers(inputs, outputs, gain):
        """Two hidden layers; the smaller the gain, the less the first outputs differ."""
        net = nn.Sequential(
            nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
        )
        for layer, scale in zip(net[::2], (2**0.5, 2**0.5, gain), strict=True):
            nn.init.orthogonal_(layer.weight, scale)
            nn.init.zeros_(layer.bias)
        return net

    def forward(self, observations):
        """The distribution of actions, and the values."""
        return Categorical(logits=self.policy(observations)), self.value(observations).squeeze(-1)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
for each in fields(Arguments):
    name = "--" + each.name.replace("_", "-")
    parser.add_argument(name, type=each.type, default=each.default, **each.metadata)
args = Arguments(**vars(parser.parse_args()))

torch.manual_seed(args.seed)
torch.set_num_threads(1)  # for networks this small more are slower
envs = shoal.make(args.env_id, args.num_envs, statistics=True)
agent = Agent(envs.single_observation_space.shape[0], int(envs.single_action_space.n))
optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

# One row for each step of all slots. What was observed has one more: what came after the last.
shape = args.rollout, args.num_envs
observations = torch.zeros(args.rollout + 1, args.num_envs, *envs.single_observation_space.shape)
actions = torch.zeros(shape, dtype=torch.long)
log_probs, rewards = torch.zeros(shape), torch.zeros(shape)
terminated, ended = torch.zeros(shape, dtype=torch.bool), torch.zeros(shape, dtype=torch.bool)
is_step = torch.zeros(shape, dtype=torch.bool)

first, _ = envs.reset(seed=args.seed)
observations[-1] = torch.from_numpy(first)
returns = deque(maxlen=100)
iterations = max(1, args.total_steps // (args.rollout * args.num_envs))
begun = time.perf_counter()

for iteration in range(iterations):
    optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - iteration / iterations)

    observations[0] = observations[-1]
    for t in range(args.rollout):
        # A slot whose episode ended in the step before is only reset in this one: its action is
        # ignored, and there is nothing to learn from it. That is what "next step" autoreset means,
        # and what it is good for: after every real step, truncated or not, the next row holds what
        # was really observed. So its value is the right one to look ahead with, unless the episode
        # was terminated, after which there is nothing.
        is_step[t] = ~ended[t - 1]
        with torch.no_grad():
            policy, _ = agent(observations[t])
        actions[t] = policy.sample()
        log_probs[t] = policy.log_prob(actions[t])
        after, reward, done, cut, infos = envs.step(actions[t].numpy())
        observations[t + 1], rewards[t] = torch.from_numpy(after), torch.from_numpy(reward)
        terminated[t] = torch.from_numpy(done)
        ended[t] = torch.from_numpy(done | cut)
        if "episode" in infos:
            returns.extend(infos["episode"]["r"][infos["_episode"]].tolist())

    with torch.no_grad():
        values = agent.value(observations).squeeze(-1)
    advantages, later = torch.zeros(shape), torch.zeros(args.num_envs)
    for t in reversed(range(args.rollout)):
        ahead = args.discount * values[t + 1] * ~terminated[t]
        surprise = rewards[t] + ahead - values[t]
        later = advantages[t] = surprise + args.discount * args.trace * later * ~ended[t]
    targets = advantages + values[:-1]

    rows = is_step.flatten().nonzero().squeeze(-1)
    flat = [part.flatten(0, 1) for part in (observations[:-1], actions, log_probs)]
    flat += [advantages.flatten(), targets.flatten()]
    for _ in range(args.epochs):
        for part in rows[torch.randperm(len(rows))].chunk(args.minibatches):
            seen, taken, old_log_probs, advantage, target = (whole[part] for whole in flat)
            policy, value = agent(seen)
            ratio = (policy.log_prob(taken) - old_log_probs).exp()
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
            gain = torch.minimum(ratio * advantage, clipped * advantage).mean()
            error = 0.5 * (value - target).square().mean()
            loss = -gain + args.value_weight * error - args.entropy * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_gradient)
            optimizer.step()

    if (iteration + 1) % max(1, iterations // 8) == 0:
        steps = (iteration + 1) * args.rollout * args.num_envs
        mean = sum(returns) / max(len(returns), 1)
        pace = steps / (time.perf_counter() - begun)
        print(f"{steps} steps, {pace:.0f}/s: the last {len(returns)} returns are {mean:.0f}")

envs.close()
