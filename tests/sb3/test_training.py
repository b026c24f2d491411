"""Training of Stable-Baselines3's algorithms on Shoal's vectors."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3, HerReplayBuffer
from stable_baselines3.common import vec_env as original
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env as original_make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.utils import check_for_correct_spaces

import shoal
from shoal.sb3 import (
    DummyVecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    as_vec_env,
    make_vec_env,
)
from tests.sb3.environments import Flicker, Masked, Taker
from tests.sb3.forking import BOTH


def small():
    """Return arguments of a small policy; a new dict, since the algorithms modify it."""
    return {"net_arch": [8]}


def parameters(model):
    return {name: value.numpy() for name, value in model.policy.state_dict().items()}


def assert_same_parameters(one, other):
    mine, theirs = parameters(one), parameters(other)
    assert mine.keys() == theirs.keys()
    for name in mine:
        np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)


ON_POLICY = {
    "ppo": partial(PPO, n_steps=32, batch_size=32, n_epochs=2),
    "a2c": partial(A2C, n_steps=8),
}


@pytest.mark.parametrize("algorithm", ON_POLICY)
@BOTH
@pytest.mark.parametrize("normalised", [False, True])
def test_on_policy_parameters_equal(algorithm, vec_env_class, normalised):
    models = []
    for make, cls, normalize in (
        (make_vec_env, vec_env_class, VecNormalize),
        (original_make_vec_env, original.DummyVecEnv, original.VecNormalize),
    ):
        vec_env = make("CartPole-v1", n_envs=4, seed=3, vec_env_cls=cls)
        if normalised:
            vec_env = normalize(vec_env)
        model = ON_POLICY[algorithm]("MlpPolicy", vec_env, seed=3, policy_kwargs=small())
        model.learn(600)
        models.append(model)
        vec_env.close()
    assert_same_parameters(*models)
    rewards = [[episode["r"] for episode in model.ep_info_buffer] for model in models]
    assert rewards[0] == rewards[1]
    assert len(rewards[0]) > 5


OFF_POLICY = {
    "dqn": (DQN, "CartPole-v1", {"learning_starts": 20}),
    "sac": (SAC, "Pendulum-v1", {"learning_starts": 20}),
    "td3": (TD3, "Pendulum-v1", {"learning_starts": 20}),
    "ddpg": (DDPG, "Pendulum-v1", {"learning_starts": 20}),
}


@pytest.mark.parametrize("name", OFF_POLICY)
def test_off_policy_parameters_equal(name):
    algorithm, env_id, arguments = OFF_POLICY[name]
    models = []
    for make, normalize in (
        (make_vec_env, VecNormalize),
        (original_make_vec_env, original.VecNormalize),
    ):
        vec_env = normalize(make(env_id, n_envs=2, seed=1))
        model = algorithm(
            "MlpPolicy", vec_env, seed=1, policy_kwargs=small(), gradient_steps=1, **arguments
        )
        model.learn(120)
        models.append(model)
    assert_same_parameters(*models)
    buffers = [model.replay_buffer for model in models]
    np.testing.assert_array_equal(buffers[0].observations, buffers[1].observations)
    np.testing.assert_array_equal(buffers[0].next_observations, buffers[1].next_observations)


@pytest.mark.parametrize("algorithm", [A2C, PPO])
def test_action_spaces(algorithm):
    for space in (
        spaces.MultiBinary(3),
        spaces.MultiDiscrete([2, 3]),
        spaces.Box(-1, 1, (2, 2)),
        spaces.Box(-1, 1, (2,), np.float64),
    ):
        models = []
        for vec_env_class in (DummyVecEnv, original.DummyVecEnv):
            vec_env = vec_env_class([partial(Taker, space)] * 2)
            model = algorithm("MlpPolicy", vec_env, n_steps=8, seed=1, policy_kwargs=small())
            models.append(model.learn(32))
        assert_same_parameters(*models)


@BOTH
def test_hindsight_with_dicts(vec_env_class):
    vec_env = vec_env_class([partial(BitFlippingEnv, n_bits=3, continuous=True)] * 2)
    model = SAC(
        "MultiInputPolicy",
        vec_env,
        replay_buffer_class=HerReplayBuffer,
        learning_starts=20,
        policy_kwargs=small(),
        seed=0,
    )
    model.learn(60)
    vec_env.close()


@BOTH
def test_masked_actions(vec_env_class):
    vec_env = vec_env_class([lambda: ActionMasker(Masked(), lambda env: env.allowed())] * 2)
    model = MaskablePPO("MlpPolicy", vec_env, n_steps=16, batch_size=16, policy_kwargs=small())
    model.learn(64)
    vec_env.close()


@BOTH
def test_recurrent_policies(vec_env_class):
    vec_env = make_vec_env("CartPole-v1", n_envs=2, vec_env_cls=vec_env_class)
    model = RecurrentPPO(
        "MlpLstmPolicy", vec_env, n_steps=16, batch_size=16, policy_kwargs={"lstm_hidden_size": 8}
    )
    model.learn(64)
    vec_env.close()


def test_callbacks_saving_and_loading(tmp_path):
    vec_env = VecNormalize(make_vec_env("CartPole-v1", n_envs=2, seed=1))
    check_env = VecNormalize(make_vec_env("CartPole-v1", n_envs=2, seed=2), training=False)
    callbacks = [
        EvalCallback(
            check_env,
            eval_freq=32,
            n_eval_episodes=2,
            verbose=0,
            best_model_save_path=str(tmp_path),
        ),
        CheckpointCallback(48, str(tmp_path), save_vecnormalize=True),
    ]
    model = PPO("MlpPolicy", vec_env, n_steps=32, batch_size=32, policy_kwargs=small())
    model.learn(128, callback=callbacks)
    model.save(tmp_path / "model")
    names = {file.name for file in tmp_path.iterdir()}
    assert {"best_model.zip", "model.zip", "rl_model_vecnormalize_96_steps.pkl"} <= names
    again = VecNormalize.load(
        str(tmp_path / "rl_model_vecnormalize_96_steps.pkl"), make_vec_env("CartPole-v1", n_envs=2)
    )
    loaded = PPO.load(tmp_path / "model", env=again)
    check_for_correct_spaces(again, loaded.observation_space, loaded.action_space)
    assert_same_parameters(model, loaded)
    mean, _ = evaluate_policy(loaded, check_env, n_eval_episodes=3, warn=True)
    assert mean > 0
    actions, _ = loaded.predict(again.reset(), deterministic=True)
    assert actions.shape == (2,)
    loaded.learn(64)


def test_images():
    models = []
    for lib in (shoal.sb3, original):
        vec_env = lib.VecFrameStack(lib.DummyVecEnv([Flicker] * 2), 2)
        vec_env.seed(1)
        model = A2C("CnnPolicy", vec_env, n_steps=4, seed=1, policy_kwargs={"net_arch": []})
        model.learn(16)
        models.append(model)
    assert_same_parameters(*models)
    assert VecFrameStack is shoal.sb3.VecFrameStack


def test_training_on_vectors_in_all_modes():
    models = []
    for mode in gymnasium.vector.AutoresetMode:
        envs = shoal.make("CartPole-v1", num_envs=3, statistics=True, autoreset_mode=mode)
        vec_env = as_vec_env(envs)
        vec_env.seed(5)
        model = PPO("MlpPolicy", vec_env, n_steps=32, batch_size=32, seed=5, policy_kwargs=small())
        model.learn(300)
        assert len(model.ep_info_buffer) > 3
        models.append(model)
        vec_env.close()
    assert_same_parameters(models[0], models[1])
    assert_same_parameters(models[0], models[2])


def test_vec_monitor_reports_to_the_logger():
    vec_env = VecMonitor(DummyVecEnv([partial(gymnasium.make, "CartPole-v1")] * 2))
    model = PPO("MlpPolicy", vec_env, n_steps=32, batch_size=32, policy_kwargs=small(), seed=0)
    model.learn(128)
    assert len(model.ep_info_buffer) > 1
    assert evaluate_policy(model, vec_env, n_eval_episodes=2)[0] > 0
