"""The RLlib sample of the BAM guide, adapted to RLlib's current API."""

import pytest

pytest.importorskip("ray.rllib")

from ray import tune

import shoal.rllib
from shoal.remote.bam import MockEnv, MockTransport, make_bam_vec_env


def test_rllib(tmp_path):
    def env_factory(**kwargs):
        return MockEnv(transport=MockTransport(), **kwargs)

    def env_creator(env_config):
        return make_bam_vec_env(env_factory, num_envs=4, **env_config)

    analysis = tune.run(
        "PPO",
        config={
            "env": shoal.rllib.register(env_creator),  # was: env_creator
            "num_env_runners": 1,  # was: "num_workers"
            "num_envs_per_env_runner": 4,  # was: "num_envs_per_worker": 1, of four slots each
            "gym_env_vectorize_mode": "vector_entry_point",
            # Shorter than in the guide, to be quick.
            "train_batch_size": 64,
            "minibatch_size": 32,
            "num_epochs": 1,
        },
        stop={"training_iteration": 1},
        storage_path=str(tmp_path),
        verbose=0,
    )
    (trial,) = analysis.trials
    assert trial.last_result["env_runners"]["num_env_steps_sampled_lifetime"] >= 64
