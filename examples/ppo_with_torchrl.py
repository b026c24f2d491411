"""Train PPO with TorchRL's collector, advantages and loss on sixteen CartPoles.

    python examples/ppo_with_torchrl.py [BATCHES]

The last line prints the mean return of the episodes that ended in the last batch. A random policy
reaches 22.
"""

import sys

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import RewardSum, TransformedEnv
from torchrl.modules import MLP, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import shoal.torchrl

SLOTS, FRAMES, EPOCHS, MINIBATCH = 16, 2_048, 4, 256
BATCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 8

torch.set_num_threads(1)  # more threads are slower for networks this small
torch.manual_seed(0)
envs = shoal.torchrl.make("CartPole-v1", num_envs=SLOTS, categorical_action_encoding=True)
env = TransformedEnv(envs, RewardSum())
env.set_seed(0)


def network(outputs):
    """A network for the policy or the value function."""
    return MLP(in_features=4, out_features=outputs, num_cells=[64, 64], activation_class=nn.Tanh)


actor = ProbabilisticActor(
    TensorDictModule(network(2), in_keys=["observation"], out_keys=["logits"]),
    in_keys=["logits"],
    spec=env.action_spec_unbatched,
    distribution_class=torch.distributions.Categorical,
    return_log_prob=True,
)
critic = ValueOperator(network(1), in_keys=["observation"])
advantages = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)

collector = Collector(
    env,
    actor,
    frames_per_batch=FRAMES,
    total_frames=FRAMES * BATCHES,
    auto_register_policy_transforms=False,  # this policy has none
)
for batch in collector:
    for _ in range(EPOCHS):
        with torch.no_grad():
            advantages(batch)
        samples = batch.reshape(-1)
        for rows in torch.randperm(FRAMES).split(MINIBATCH):
            parts = loss(samples[rows])
            total = parts["loss_objective"] + parts["loss_critic"] + parts["loss_entropy"]
            optimizer.zero_grad()
            total.backward()
            nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
            optimizer.step()
    ended = batch["next", "done"]
    returns = batch["next", "episode_reward"][ended]
collector.shutdown()  # closes the environments

steps = FRAMES * BATCHES
print(f"{steps} steps; mean return of the last {len(returns)} episodes {returns.mean():.0f}")
