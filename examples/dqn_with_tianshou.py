"""Train Tianshou's DQN; its collector steps and resets slots of a native kernel by number.

    python examples/dqn_with_tianshou.py [STEPS]

The default of a thousand steps shows how the parts fit together, and is too short to learn. The
last line prints the mean length of an episode after training.
"""

import sys

import numpy as np
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from shoal.tianshou import make  # was: tianshou.env.SubprocVectorEnv

NUM_ENVS = 8
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000

torch.manual_seed(0)
np.random.seed(0)  # Tianshou's exploration uses it
torch.set_num_threads(1)  # more threads are slower for networks this small
envs = make("CartPole-v1", NUM_ENVS)
envs.seed(0)
policy = DiscreteQLearningPolicy(
    model=Net(state_shape=(4,), action_shape=2, hidden_sizes=[64, 64]),
    action_space=envs.action_space[0],
    eps_training=0.2,
)
algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=3e-3), target_update_freq=100)
buffer = VectorReplayBuffer(10_000, NUM_ENVS)
algorithm.run_training(
    OffPolicyTrainerParams(
        training_collector=Collector(algorithm, envs, buffer, exploration_noise=True),
        max_epochs=1,
        epoch_num_steps=STEPS,
        collection_step_num_env_steps=64,
        update_step_num_gradient_steps_per_sample=0.5,
        show_progress=False,
        verbose=False,
    )
)
stats = Collector(algorithm, envs).collect(n_episode=16, reset_before_collect=True)
envs.close()

print(f"{STEPS} steps of training; then 16 episodes of {stats.lens.mean():.0f} steps on average")
