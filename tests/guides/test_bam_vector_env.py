"""The samples of the guide to BAM's vector environment; only the import lines are changed.

The sample for RLlib is reduced to the function that makes the vector; tests/rllib/test_guide.py
runs all of it with RLlib.
"""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from shoal.remote.bam import MockEnv, MockTransport, make_bam_vec_env


def create_mock_env(**kwargs):
    """Factory function to create a single environment instance."""
    transport = MockTransport()
    return MockEnv(transport=transport, **kwargs)


def test_basic_usage_and_environment_operations():
    # Create a vectorized environment with 4 parallel environments
    vec_env = make_bam_vec_env(
        env_factory=create_mock_env,
        num_envs=4,
        obs=True,
        color=True,
        render_mode="rgb_array"
    )  # fmt: skip
    vec_env.action_space.seed(0)

    # Reset all environments
    observations, infos = vec_env.reset(seed=42)
    assert {key: part.shape for key, part in observations.items()} == {
        "obs": (4, 4),
        "color_img": (4, 32, 32, 3),
    }
    assert infos == {}

    # Take actions in all environments
    actions = vec_env.action_space.sample()
    observations, rewards, terminations, truncations, infos = vec_env.step(actions)
    assert observations in vec_env.observation_space
    assert rewards.shape == terminations.shape == truncations.shape == (4,)
    assert len(vec_env.render()) == 4

    # Close the environment
    vec_env.close()


def test_client_as_described():
    vec_env = make_bam_vec_env(create_mock_env, num_envs=4)
    client = vec_env.single_env
    assert client.num_envs == 4
    assert client.single_observation_space == vec_env.single_observation_space
    assert client.single_action_space == vec_env.single_action_space
    assert callable(client.set_action_space)
    assert vec_env.autoreset_mode is AutoresetMode.NEXT_STEP
    vec_env.close()


def test_stable_baselines3():
    from stable_baselines3 import PPO

    env_factory = create_mock_env
    vec_env = make_bam_vec_env(env_factory, num_envs=4)
    # Shorter than in the guide, which has no n_steps and total_timesteps=10000.
    model = PPO("MlpPolicy", vec_env, verbose=1, n_steps=64)
    model.learn(total_timesteps=1000)
    assert model.num_timesteps >= 1000
    vec_env.close()


def test_rllib():
    env_factory = create_mock_env

    def env_creator(env_config):
        return make_bam_vec_env(env_factory, num_envs=4, **env_config)

    vec_env = env_creator({})
    assert vec_env.num_envs == 4
    assert vec_env.reset(seed=1)[0] in vec_env.observation_space
    vec_env.close()
    with env_creator({"obs": True, "color": True}) as vec_env:
        assert set(vec_env.single_observation_space) == {"obs", "color_img"}


# Space handling

BOX = spaces.Box(np.float32([-1, 0]), np.float32([1, 9]))


def checked(**space):
    """Return the batched space, of observations or actions, after a few steps of the vector."""
    ((name, _),) = space.items()
    with make_bam_vec_env(create_mock_env, num_envs=3, **space) as vec_env:
        vec_env.action_space.seed(0)
        observations, _ = vec_env.reset(seed=0)
        for _ in range(3):
            assert observations in vec_env.observation_space
            observations, *_ = vec_env.step(vec_env.action_space.sample())
        return getattr(vec_env, name)


@pytest.mark.parametrize("name", ["observation_space", "action_space"])
def test_box_spaces_gain_a_batch_dimension_with_their_bounds(name):
    batched = checked(**{name: BOX})
    assert batched == spaces.Box(np.tile(BOX.low, (3, 1)), np.tile(BOX.high, (3, 1)))


@pytest.mark.parametrize("name", ["observation_space", "action_space"])
def test_each_component_of_dict_spaces_is_batched(name):
    batched = checked(**{name: spaces.Dict(x=BOX, y=spaces.Dict(z=spaces.Discrete(3, start=2)))})
    assert isinstance(batched, spaces.Dict)
    assert batched["x"] == batch_space(BOX, 3)
    assert batched["y"]["z"] == spaces.MultiDiscrete([3] * 3, start=[2] * 3)


def test_sequence_spaces_are_batched():
    single = spaces.Sequence(BOX)
    batched = checked(observation_space=single)
    assert batched == batch_space(single, 3)  # a tuple with one per slot
    assert batched.spaces == (single,) * 3


def test_discrete_actions_are_converted_to_multi_discrete_and_keep_their_start():
    batched = checked(action_space=spaces.Discrete(4, start=5))
    assert batched == spaces.MultiDiscrete([4, 4, 4], start=[5, 5, 5])


def test_multi_discrete_actions_are_repeated_for_all_environments():
    single = spaces.MultiDiscrete([2, 5], start=[1, -1])
    batched = checked(action_space=single)
    assert batched == batch_space(single, 3)
    assert batched.low.tolist() == [[1, -1]] * 3
    assert batched.high.tolist() == [[2, 3]] * 3


@pytest.mark.parametrize(
    "single", [spaces.MultiBinary(4), spaces.Tuple((BOX, spaces.Discrete(2)))], ids=str
)
def test_other_actions_are_batched_as_gymnasium_does(single):
    assert checked(action_space=single) == batch_space(single, 3)


# Limitations and future enhancements of the guide


def test_transports_asynchronous_steps_and_batch_sizes():
    with make_bam_vec_env([create_mock_env, create_mock_env], [2, 2], batch_size=2) as vec_env:
        vec_env.reset(seed=42)
        vec_env.send([0, 1, 0, 1])
        first, then = vec_env.recv(), vec_env.recv()
        assert len(first.slots) == len(then.slots) == 2
        assert sorted([*first.slots, *then.slots]) == [0, 1, 2, 3]
        transports = {id(client.transport) for client in vec_env.clients}
        assert len(transports) == 2
