"""Train RLlib's PPO on an Atari game, with observations in the format of its networks."""

import numpy as np
import ray
from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig

import shoal.rllib
from shoal.vector.wrappers import TransformObservation

IMAGES = spaces.Box(0.0, 1.0, (84, 84, 4), np.float32)


def make_pong(num_envs):
    """Return Pong environments that observe four stacked frames as floats, with channels last."""
    envs = shoal.make("ALE/Pong-v5", num_envs)
    return TransformObservation(
        envs,
        lambda frames: np.moveaxis(frames, 1, -1) / np.float32(255),
        single_observation_space=IMAGES,
    )


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
config = (
    PPOConfig()
    .environment(shoal.rllib.register(make_pong, name="pong"))
    .env_runners(
        num_env_runners=0,
        num_envs_per_env_runner=8,
        gym_env_vectorize_mode="vector_entry_point",
        env_runner_cls=shoal.rllib.EnvRunner,
    )
    .training(train_batch_size=256, minibatch_size=128, num_epochs=1)
    .rl_module(model_config={"conv_filters": [[16, 8, 4], [32, 4, 2]], "head_fcnet_hiddens": [128]})
    .debugging(seed=0)
)
algorithm = config.build_algo()
for _ in range(2):
    result = algorithm.train()
    print(f"{result['env_runners']['num_env_steps_sampled_lifetime']:.0f} steps")
algorithm.stop()
ray.shutdown()
