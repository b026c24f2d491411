"""PPO in one file, in the style of CleanRL.

    python examples/ppo_cleanrl.py --env-id Acrobot-v1 --num-envs 32 --seed 3

`--help` lists all arguments. With the defaults, the returns of CartPole rise from 20 to several
hundred within a few seconds; the maximum is 500.
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
    """A field with its help text."""
    return field(default=default, metadata={"help": f"{explanation} ({default})"})


@dataclass
class Arguments:
    """The arguments of a run."""

    env_id: str = option("CartPole-v1", "id, with discrete actions and flat observations")
    seed: int = option(1, "seed of all random numbers")
    total_steps: int = option(80_000, "total environment steps")
    num_envs: int = option(16, "number of slots")
    rollout: int = option(32, "steps of each slot per update")
    learning_rate: float = option(1e-3, "initial learning rate of Adam, annealed to 0")
    discount: float = option(0.99, "discount factor gamma")
    trace: float = option(0.95, "lambda of generalised advantage estimation")
    epochs: int = option(4, "passes over each rollout")
    minibatches: int = option(4, "minibatches per pass")
    clip: float = option(0.2, "clipping of the probability ratio")
    entropy: float = option(0.01, "coefficient of the entropy bonus")
    value_weight: float = option(0.5, "coefficient of the value loss")
    max_gradient: float = option(0.5, "maximum norm of the gradient")


class Agent(nn.Module):
    """A policy network and a value network."""

    def __init__(self, inputs, actions):
        super().__init__()
        self.policy = self.layers(inputs, actions, 0.01)
        self.value = self.layers(inputs, 1, 1.0)

    @staticmethod
    def layers(inputs, outputs, gain):
        """Two hidden layers; ``gain`` scales the initial outputs."""
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
torch.set_num_threads(1)  # more threads are slower for networks this small
envs = shoal.make(args.env_id, args.num_envs, statistics=True)
agent = Agent(envs.single_observation_space.shape[0], int(envs.single_action_space.n))
optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

# One row per step of all slots. Observations have one more row, for those after the last step.
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
start = time.perf_counter()

for iteration in range(iterations):
    optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - iteration / iterations)

    observations[0] = observations[-1]
    for t in range(args.rollout):
        # Next-step autoreset: a slot whose episode ended in the previous step is reset in this one.
        # Its action is ignored, so the row is masked. After every real step, also a truncated one,
        # the next row holds the observation that followed, so its value is the one to bootstrap
        # from, unless the episode was terminated.
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
    advantages, next_advantage = torch.zeros(shape), torch.zeros(args.num_envs)
    for t in reversed(range(args.rollout)):
        next_value = args.discount * values[t + 1] * ~terminated[t]
        delta = rewards[t] + next_value - values[t]
        trace = args.discount * args.trace * ~ended[t]
        next_advantage = advantages[t] = delta + trace * next_advantage
    targets = advantages + values[:-1]

    rows = is_step.flatten().nonzero().squeeze(-1)
    flat = [part.flatten(0, 1) for part in (observations[:-1], actions, log_probs)]
    flat += [advantages.flatten(), targets.flatten()]
    for _ in range(args.epochs):
        for part in rows[torch.randperm(len(rows))].chunk(args.minibatches):
            observation, action, old_log_prob, advantage, target = (each[part] for each in flat)
            policy, value = agent(observation)
            ratio = (policy.log_prob(action) - old_log_prob).exp()
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
            policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
            value_loss = 0.5 * (value - target).square().mean()
            loss = policy_loss + args.value_weight * value_loss
            loss -= args.entropy * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_gradient)
            optimizer.step()

    if (iteration + 1) % max(1, iterations // 8) == 0:
        steps = (iteration + 1) * args.rollout * args.num_envs
        mean = sum(returns) / max(len(returns), 1)
        rate = steps / (time.perf_counter() - start)
        print(f"{steps} steps, {rate:.0f}/s: mean of the last {len(returns)} returns {mean:.0f}")

envs.close()
