"""Training with Tianshou's trainers."""

import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from shoal.tianshou import make


def test_trainer_updates_and_evaluates():
    envs, test_envs = (make("CartPole-v1", 4, max_episode_steps=20) for _ in range(2))
    net = Net(state_shape=(4,), action_shape=2, hidden_sizes=[8])
    policy = DiscreteQLearningPolicy(model=net, action_space=envs.action_space[0], eps_training=0.5)
    algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(), target_update_freq=5)
    before = [parameter.detach().clone() for parameter in net.parameters()]
    result = algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=Collector(
                algorithm, envs, VectorReplayBuffer(400, 4), exploration_noise=True
            ),
            test_collector=Collector(algorithm, test_envs),
            test_step_num_episodes=6,
            max_epochs=2,
            epoch_num_steps=100,
            collection_step_num_env_steps=20,
            update_step_num_gradient_steps_per_sample=0.2,
            show_progress=False,
            verbose=False,
        )
    )
    assert result.train_step == 200
    assert result.best_reward > 5
    for old, new in zip(before, net.parameters(), strict=True):
        assert not torch.equal(old, new)
    envs.close()
    test_envs.close()
