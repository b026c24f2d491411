"""`ShoalWrapper` compared with skrl's own wrapper, and training with skrl's agents."""

import sys
from functools import partial
from importlib import import_module

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from skrl import config
from skrl.agents.torch.dqn import DQN
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import Wrapper, wrap_env
from skrl.envs.wrappers.torch.gymnasium_envs import GymnasiumWrapper
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer

import shoal
from shoal.errors import MissingExtraError
from shoal.skrl import ShoalWrapper, make, wrap
from shoal.testing import assert_identical
from shoal.vector.wrappers import NormalizeObservation
from tests.random_environments import RandomEnv

NESTED = spaces.Dict(
    b=spaces.Discrete(9),
    a=spaces.Tuple((spaces.Box(-1, 1, (2, 2)), spaces.MultiDiscrete([3, 4]))),
)


@pytest.fixture(autouse=True)
def seeded():
    before, config.torch.key = config.torch.key, 7
    yield
    config.torch.key = before


def make_same_step(source, count, **options):
    return shoal.make(source, count, autoreset_mode="SameStep", **options)


def as_arrays(results):
    """Convert tensors to arrays of the same dtype, without infos."""
    *tensors, _ = results
    return [tensor.numpy() for tensor in tensors]


@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("CartPole-v1", {"max_episode_steps": 9}),
        ("CartPole-v1", {"max_episode_steps": 9, "backend": "inline"}),
        ("Pendulum-v1", {"max_episode_steps": 9}),
        ("FrozenLake-v1", {}),
        (partial(RandomEnv, NESTED, spaces.MultiDiscrete([2, 3])), {"backend": "inline"}),
    ],
    ids=str,
)
def test_tensors_equal_those_of_skrls_wrapper(source, options, copies):
    ours = make(source, 3, device="cpu", copy=copies, **options)
    theirs = wrap_env(make_same_step(source, 3, **options), wrapper="gymnasium", verbose=False)
    assert isinstance(ours, Wrapper)
    assert isinstance(theirs, GymnasiumWrapper)
    for name in ("observation_space", "action_space", "num_envs", "device", "num_agents"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert_identical(as_arrays(ours.reset()), as_arrays(theirs.reset()))
    theirs.action_space.seed(0)
    results = []
    ends = 0
    for _ in range(40):
        actions = [np.ravel(theirs.action_space.sample()) for _ in range(3)]
        actual, expected = (env.step(torch.tensor(np.array(actions))) for env in (ours, theirs))
        assert_identical(as_arrays(actual), as_arrays(expected))
        ends += int((actual[2] | actual[3]).sum())
        results.append((actual, expected))
    assert ends > 0
    for actual, expected in results:  # returned tensors are not modified later
        assert_identical(as_arrays(actual), as_arrays(expected))
    ours.close()
    theirs.close()


def test_finished_slot_returns_first_and_final_observation():
    env = make("CartPole-v1", 2, device="cpu", max_episode_steps=3)
    plain = shoal.make("CartPole-v1", 2, autoreset_mode="Disabled", max_episode_steps=3)
    env.reset()
    plain.reset(seed=7)
    for _ in range(3):
        observations, rewards, terminated, truncated, infos = env.step(torch.tensor([[0], [1]]))
        last, *_ = plain.step(np.array([0, 1]))
    assert rewards.tolist() == [[1], [1]]
    assert terminated.tolist() == [[False], [False]]
    assert truncated.tolist() == [[True], [True]]
    first, _ = plain.reset(options={"reset_mask": np.array([True, True])})
    assert_identical(observations.numpy(), first)
    assert_identical(np.stack(infos["final_obs"]), last)
    env.close()
    plain.close()


def test_only_the_first_reset_resets():
    env = make("CartPole-v1", 1, device="cpu", max_episode_steps=3)
    first, _ = env.reset()
    again, _ = env.reset()
    assert again is first
    for _ in range(3):
        observations, *_, truncated, infos = env.step(torch.tensor([[0]]))
    assert truncated.item()
    assert env.reset() == (
        observations,
        infos,
    )  # called by trainers after an episode
    env.close()


def test_nested_actions():
    actions = spaces.Dict(push=spaces.Box(-1, 1, (2,)), turn=spaces.Discrete(3))
    env_fns = [partial(RandomEnv, spaces.Discrete(4), actions) for _ in range(2)]
    env = make(env_fns, device="cpu", backend="inline")
    env.reset()
    env.step(torch.tensor([[0.5, -0.5, 2.0], [0.25, 1.0, 0.0]]))
    received = [actions[0] for actions in env.call("received")]
    assert [action["turn"] for action in received] == [2, 0]
    assert [action["push"].tolist() for action in received] == [[0.5, -0.5], [0.25, 1.0]]
    env.close()


@pytest.mark.parametrize("kind", ["shoal, wrapped", "gymnasium, wrapped", "gymnasium"])
def test_supported_vectors(kind):
    if "gymnasium" in kind:
        env_fns = [partial(gymnasium.make, "CartPole-v1")] * 2
        vector = gymnasium.vector.SyncVectorEnv(
            env_fns, copy=False, autoreset_mode=AutoresetMode.SAME_STEP
        )
    else:
        vector = make_same_step("CartPole-v1", 2)
    env = wrap(NormalizeObservation(vector) if "wrapped" in kind else vector, device="cpu")
    first, _ = env.reset()
    before = first.clone()
    env.step(torch.tensor([[0], [1]]))
    assert torch.equal(first, before)
    env.close()
    assert vector.closed


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_other_autoreset_modes_are_rejected(mode):
    vector = shoal.make("CartPole-v1", 2, autoreset_mode=mode)
    with pytest.raises(ValueError, match=rf"{mode.name}.*autoreset_mode=AutoresetMode\.SAME_STEP"):
        wrap(vector)
    vector.close()


def test_unsupported_spaces_are_rejected():
    with pytest.raises(ValueError, match=r"\['a'\]\[1\]: Text"):
        make(
            partial(
                RandomEnv,
                spaces.Dict(a=spaces.Tuple((spaces.Discrete(2), spaces.Text(4)))),
                spaces.Discrete(2),
            ),
            2,
            backend="inline",
        )
    with pytest.raises(ValueError, match="MultiBinary"):
        make(partial(RandomEnv, spaces.Box(-1, 1), spaces.MultiBinary(2)), 2, backend="inline")
    with pytest.raises(TypeError, match="got CartPoleEnv"):
        wrap(gymnasium.make("CartPole-v1").unwrapped)


def test_attributes_of_the_vector():
    env = make("CartPole-v1", 2, render_mode="rgb_array", device="cpu")
    env.reset()
    assert env.get_attr("gravity") == (9.8, 9.8)
    assert env.state() is None
    assert env.state_space is None
    assert env.device == torch.device("cpu")
    assert [image.shape for image in env.render()] == [(400, 600, 3)] * 2
    env.close()
    env.close()


def test_missing_skrl_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "skrl", None)
    monkeypatch.delitem(sys.modules, "shoal.skrl")
    with pytest.raises(MissingExtraError, match=r'pip install "shoal\[skrl\]"'):
        import_module("shoal.skrl")


class Policy(CategoricalMixin, Model):
    def __init__(self, observation_space, action_space):
        Model.__init__(
            self,
            observation_space=observation_space,
            action_space=action_space,
            device="cpu",
        )
        CategoricalMixin.__init__(self)
        self.net = torch.nn.Linear(self.num_observations, self.num_actions)

    def compute(self, inputs, role=""):
        return self.net(inputs["observations"]), {}


class Value(DeterministicMixin, Model):
    def __init__(self, observation_space, action_space, outputs=1):
        Model.__init__(
            self,
            observation_space=observation_space,
            action_space=action_space,
            device="cpu",
        )
        DeterministicMixin.__init__(self)
        self.net = torch.nn.Linear(self.num_observations, outputs)

    def compute(self, inputs, role=""):
        return self.net(inputs["observations"]), {}


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("agent_class", [PPO, DQN])
def test_agents_train(agent_class, count, tmp_path):
    env = make("CartPole-v1", count, device="cpu", max_episode_steps=10)
    assert type(env) is ShoalWrapper
    both_spaces = env.observation_space, env.action_space
    if agent_class is PPO:
        models = {"policy": Policy(*both_spaces), "value": Value(*both_spaces)}
        settings = {"rollouts": 16, "learning_epochs": 2, "time_limit_bootstrap": True}
    else:
        models = {"q_network": Value(*both_spaces, 2), "target_q_network": Value(*both_spaces, 2)}
        settings = {"learning_starts": 8, "batch_size": 8}
    before = {name: model.net.weight.detach().clone() for name, model in models.items()}
    agent = agent_class(
        models=models,
        memory=RandomMemory(memory_size=16, num_envs=count, device="cpu"),
        observation_space=env.observation_space,
        action_space=env.action_space,
        device="cpu",
        cfg={**settings, "experiment": {"directory": str(tmp_path), "write_interval": 16}},
    )
    cfg = {"timesteps": 48, "disable_progressbar": True, "close_environment_at_exit": False}
    SequentialTrainer(env=env, agents=agent, cfg=cfg).train()
    for name, weight in before.items():
        assert not torch.equal(models[name].net.weight, weight)
    assert agent.memory.get_tensor_by_name("truncated" if agent_class is PPO else "rewards").any()
    env.close()


@pytest.mark.parametrize("options", [{}, {"backend": "inline"}], ids=["kernel", "python"])
def test_skrls_wrapper_supports_shoals_vectors(options):
    from skrl.envs.wrappers.torch import wrap_env

    ours = make_same_step("CartPole-v1", 2, **options)
    env = wrap_env(ours, verbose=False)
    assert env.num_envs == 2
    observations, _ = env.reset()
    assert observations.shape == (2, 4)
    env.close()
