"""Train RLlib's PPO on CartPole, with 32 native environments per env runner."""

import ray
from ray.rllib.algorithms.ppo import PPOConfig

import shoal.rllib

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
config = (
    PPOConfig()
    .environment(shoal.rllib.register("CartPole-v1"))
    .env_runners(
        num_env_runners=1,
        num_envs_per_env_runner=32,
        gym_env_vectorize_mode="vector_entry_point",  # not a loop over environments
        env_runner_cls=shoal.rllib.EnvRunner,  # sends the actions of all slots as one array
    )
    .training(train_batch_size=2048, minibatch_size=256, num_epochs=8, lr=2e-3)
    .rl_module(model_config={"fcnet_hiddens": [64, 64]})
    .debugging(seed=0)
)
algorithm = config.build_algo()
for _ in range(8):
    result = algorithm.train()["env_runners"]
    print(
        f"{result['num_env_steps_sampled_lifetime']:6.0f} steps, "
        f"mean return {result['episode_return_mean']:.0f}"
    )
algorithm.stop()
ray.shutdown()
