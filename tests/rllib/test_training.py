"""Training with RLlib's algorithms."""

import math

import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("ray.rllib")

from ray.rllib.algorithms.algorithm import Algorithm

import shoal
import shoal.rllib
from shoal.vector.wrappers import TransformObservation
from tests.rllib.env_runners import NATIVE, NoModule, make_config, runner


def learning_config(num_env_runners, **settings):
    config = make_config(
        shoal.rllib.register("CartPole-v1"),
        16,
        num_env_runners=num_env_runners,
        env_runner_cls=shoal.rllib.EnvRunner,
        **NATIVE,
        **settings,
    )
    return config.training(train_batch_size=2048, minibatch_size=256, num_epochs=8, lr=3e-3)


def mean_return(result):
    return result["env_runners"]["episode_return_mean"]


@pytest.mark.parametrize("num_env_runners", [0, 1])
def test_ppo_learns_cartpole(num_env_runners):
    algorithm = learning_config(num_env_runners).build_algo()
    try:
        returns = [mean_return(algorithm.train()) for _ in range(5)]
    finally:
        algorithm.stop()
    assert returns[-1] > 2 * returns[0]


def test_restored_checkpoint_is_evaluated_and_trained(tmp_path):
    config = learning_config(0).evaluation(
        evaluation_interval=None, evaluation_duration=4, evaluation_duration_unit="episodes"
    )
    algorithm = config.build_algo()
    algorithm.train()
    algorithm.save_to_path(tmp_path / "checkpoint")
    algorithm.stop()
    again = Algorithm.from_checkpoint(str(tmp_path / "checkpoint"))
    try:
        assert not math.isnan(mean_return(again.evaluate()))
        assert again.train()["training_iteration"] == 2
    finally:
        again.stop()


def test_ppo_trains_on_atari():
    pytest.importorskip("ale_py")

    def pongs(num_envs):
        envs = shoal.make("ALE/Pong-v5", num_envs, backend="inline", img_height=42, img_width=42)
        return TransformObservation(
            envs,
            lambda frames: np.moveaxis(frames, 1, -1) / np.float32(255),
            single_observation_space=spaces.Box(0.0, 1.0, (42, 42, 4), np.float32),
        )

    config = make_config(
        shoal.rllib.register(pongs),
        4,
        env_runner_cls=shoal.rllib.EnvRunner,
        model_config={"conv_filters": [[8, 8, 4], [16, 4, 2]]},
        **NATIVE,
    )
    algorithm = config.training(train_batch_size=64, minibatch_size=32, num_epochs=1).build_algo()
    try:
        result = algorithm.train()
    finally:
        algorithm.stop()
    assert result["env_runners"]["num_env_steps_sampled_lifetime"] >= 64
    assert np.isfinite(result["learners"]["default_policy"]["total_loss"])


def test_atari_episodes_are_sampled():
    pytest.importorskip("ale_py")
    name = shoal.rllib.register("ALE/Pong-v5", backend="inline")
    with runner(name, 2, kind=NoModule, **NATIVE) as env_runner:
        episodes = env_runner.sample(num_timesteps=12, random_actions=True)
    assert [episode.get_observations().shape for episode in episodes] == [(7, 4, 84, 84)] * 2
    assert set(episodes[0].get_infos(-1)) >= {"lives", "frame_number"}
